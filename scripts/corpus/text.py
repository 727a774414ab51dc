# Lines of words, in MiB: text.py FILE MIB
import sys
x, words = 1, ["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta"]
with open(sys.argv[1], "w") as f:
    n = 0
    while n < int(sys.argv[2]) << 20:
        line = []
        for _ in range(9):
            x = (x * 1103515245 + 12345) % 2147483648
            line.append(words[(x >> 16) % 8] + str(x % 997))
        n += f.write(" ".join(line) + "\n")
