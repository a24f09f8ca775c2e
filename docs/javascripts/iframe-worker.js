// Search for a site that was opened from the disk: browsers start no worker there. Here the script of the
// worker runs in a hidden frame of the page, and messages go to and fro as they would with a worker.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(address) {
      super()
      this.waiting = [] // messages that came before the script was loaded
      const frame = document.createElement("iframe")
      frame.hidden = true
      document.body.append(frame)
      this.inside = frame.contentWindow
      this.inside.postMessage = data => this.dispatchEvent(new MessageEvent("message", { data }))
      this.inside.importScripts = (...addresses) =>
        addresses.reduce((before, next) => before.then(() => this.load(next)), Promise.resolve())
      this.load(address).then(() => {
        this.waiting.forEach(data => this.deliver(data))
        this.waiting = null
      })
    }

    load(address) {
      return new Promise((done, failed) => {
        const script = this.inside.document.createElement("script")
        script.src = address
        script.onload = done
        script.onerror = failed
        this.inside.document.body.append(script)
      })
    }

    deliver(data) {
      this.inside.dispatchEvent(new this.inside.MessageEvent("message", { data }))
    }

    postMessage(data) {
      if (this.waiting) this.waiting.push(data)
      else this.deliver(data)
    }

    terminate() {
      this.inside.frameElement.remove()
    }
  }
}
