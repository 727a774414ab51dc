# Writes a mapping of a file to another file: the kernel touches each page of it.
import mmap, os, sys
fd, to = os.open(sys.argv[1], os.O_RDONLY), os.open(sys.argv[2], os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
size = os.fstat(fd).st_size
m = memoryview(mmap.mmap(fd, size, prot=mmap.PROT_READ))
at = 0
while at < size:
    at += os.write(to, m[at : at + (1 << 20)])
