# Splices a file into the null device, by a pipe.
import os, sys
a, b = os.open(sys.argv[1], os.O_RDONLY), os.open("/dev/null", os.O_WRONLY)
r, w = os.pipe()
while n := os.splice(a, w, 65536):
    os.splice(r, b, n)
