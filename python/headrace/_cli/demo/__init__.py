"""Demo on real photographs: proof of equality, speed against torch's DataLoader, a training run, a contact sheet.

headrace demo --out demo-out
"""

from headrace._cli.demo.photo_folder import Layout, lay_out

__all__ = ["Layout", "lay_out"]
