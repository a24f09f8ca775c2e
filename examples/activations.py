"""Principal directions of a model's activations while it runs, with a bound on the error.

python examples/activations.py
"""

from typing import Any

import torch

import sketchbandit as sb


def main() -> None:
    """Run a small model, sketch what one of its layers puts out, and tell what is known of it."""
    torch.manual_seed(0)
    width = 256
    layer = torch.nn.Linear(64, width)
    model = torch.nn.Sequential(layer, torch.nn.ReLU(), torch.nn.Linear(width, 10))
    sketch = sb.FrequentDirections(width, size=24)

    def watch(module: Any, inputs: Any, output: Any) -> None:
        del module, inputs
        sketch.update(output.flatten(end_dim=-2))  # on its device; nothing is shrunk here

    handle = layer.register_forward_hook(watch)
    with torch.inference_mode():
        for _ in range(40):
            model(torch.randn(16, 32, 64) * 0.8 ** torch.arange(64))  # 16 texts of 32 tokens
    handle.remove()

    found = sb.spectrum(sketch, 5)  # the first read: one shrink, of all that was gathered
    print(f"{sketch.count:,} activations of width {sketch.dim}, {len(sketch.rows)} rows kept")
    for number, sigma_sq in enumerate(found.sigma_sq):
        most = sigma_sq + sketch.error_bound
        print(
            f"direction {number}: from {sigma_sq / sketch.mass:.4%} to {most / sketch.mass:.4%} of the mass"
        )


if __name__ == "__main__":
    main()
