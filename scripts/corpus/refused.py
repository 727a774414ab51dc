# Copies files by copy_file_range into a pipe, which is refused, and then by read and write.
import os, sys
r, w = os.pipe()
for d, _, names in list(os.walk(sys.argv[1])) * 10:
    for name in names:
        f = os.open(os.path.join(d, name), os.O_RDONLY)
        try:
            os.copy_file_range(f, w, 65536)
        except OSError:
            while data := os.read(f, 65536):
                os.write(w, data)
                os.read(r, 65536)
        os.close(f)
