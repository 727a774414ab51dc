# Hands a mapping of a file to the null device, and touches none of it.
import mmap, os, sys
fd, null = os.open(sys.argv[1], os.O_RDONLY), os.open("/dev/null", os.O_WRONLY)
size = os.fstat(fd).st_size
m = memoryview(mmap.mmap(fd, size, prot=mmap.PROT_READ))
at = 0
while at < size:
    at += os.write(null, m[at : at + (1 << 30)])
