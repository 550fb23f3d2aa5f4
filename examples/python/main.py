from tranca import Sandbox

with Sandbox(ttl=60) as s:
    s.files.write("numbers.txt", "6 7")
    r = s.run_python("import os, math\nn = map(int, open('numbers.txt').read().split())\n"
                     "print('answer', math.prod(n), 'in', os.uname().nodename)", timeout=10)
    print(r.stdout, end="")
    print(r.exit.reason, r.exit.code)
    server = s.start("while read line; do echo \"$line!\"; done", stdin=True)
    server.write("hello\n", close=True)
    print(b"".join(out.data for out in server).decode(), end="")
