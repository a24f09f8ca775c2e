"""HTTP/1.1 on sockets: bytes become requests, answers become bytes, and nobody holds more than the limits."""
