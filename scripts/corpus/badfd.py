# Writes to a descriptor that is closed.
import os
for _ in range(5000):
    try:
        os.write(99, b"x" * 4096)
    except OSError:
        pass
