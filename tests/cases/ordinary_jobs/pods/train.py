import sys

import mine
import other
import torch

sys.stdout.write(f"{sys.argv[1]} {mine.value} {other.value} {sys.prefix} {torch.ones(2).sum():g}\n")
