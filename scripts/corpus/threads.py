# Threads that sleep, and one that waits for them.
import threading, time
threads = [threading.Thread(target=time.sleep, args=(0.3,)) for _ in range(5)]
for t in threads:
    t.start()
for t in threads:
    t.join()
