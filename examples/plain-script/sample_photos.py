"""Draws pictures to try the example with: python sample_photos.py DIRECTORY NUMBER."""

import shutil
import sys
from pathlib import Path

from PIL import Image

directory, number = Path(sys.argv[1]), int(sys.argv[2])
directory.mkdir(parents=True, exist_ok=True)
photos = [directory / f"photo-{each:03}.png" for each in range(1, number + 1)]
if not photos[0].exists():
    Image.radial_gradient("L").resize((6000, 4000)).save(photos[0])
for photo in photos:
    if not photo.exists():
        shutil.copy(photos[0], photo)
print(f"{number} pictures in {directory}")
