# A little of everything, in a directory of its own: what the outputs beside the scripts were made over.
set -e
cd "$(mktemp -d)"
trap 'cd / && rm -r "$OLDPWD"' EXIT
dd if=/dev/zero of=data bs=64k count=16 conv=fsync status=none
dd if=data of=copy bs=8k skip=4 status=none
cat data copy | wc -c > count
ls -l > list
cat none 2>/dev/null || true
mv copy moved && rm moved
sleep 9 & kill $! && wait $! 2>/dev/null || true
perl -e 'select(undef, undef, undef, 0.01)'
perl -MSocket -e 'socket(S, PF_INET, SOCK_DGRAM, 0); send(S, "hello", 0, pack_sockaddr_in(9, INADDR_LOOPBACK));
    connect(S, pack_sockaddr_in(9, INADDR_LOOPBACK)); socket(T, PF_INET, SOCK_STREAM, 0);
    connect(T, pack_sockaddr_in(1, INADDR_LOOPBACK))'
sleep 0.01
i=0; while [ $i -lt 100000 ]; do i=$((i + 1)); done
