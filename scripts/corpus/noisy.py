import os, time
time.sleep(0.02 + os.urandom(1)[0] / 255 * 0.2)
