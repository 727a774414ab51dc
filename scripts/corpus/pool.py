import multiprocessing

def work(n):
    return sum(i * i for i in range(n))

if __name__ == "__main__":
    with multiprocessing.Pool(4) as pool:
        print(sum(pool.map(work, [200000] * 16)))
