# Lines for sqlite3: inserts.py ROWS
import sys
print("create table if not exists t(a integer primary key, b text);")
for i in range(int(sys.argv[1])):
    print(f"insert into t(b) values('{i * 7919 % 100003} some text of row {i}');")
