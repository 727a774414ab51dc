print("[" + ",".join(str(i) for i in range(200000)) + "]")
