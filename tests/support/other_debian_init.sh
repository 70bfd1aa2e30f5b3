#!/bin/bash
# PID 1 of a folder with another Debian: run as `unshare --mount --pid --fork other_debian_init.sh FOLDER`.
# It shares the machine's kernel, cgroups and network.
set -euo pipefail
root=$1
mount --make-rprivate /
mount --bind "$root" "$root"
mount -t proc proc "$root/proc"
mount --rbind /sys "$root/sys"
mount -t tmpfs -o mode=755 tmpfs "$root/dev"
mount -t tmpfs -o mode=755 tmpfs "$root/run"
for device in null zero full random urandom tty fuse kmsg net/tun; do
	[ -e "/dev/$device" ] || continue
	mkdir -p "$(dirname "$root/dev/$device")"
	touch "$root/dev/$device"
	mount --bind "/dev/$device" "$root/dev/$device"
done
mkdir -p "$root"/dev/{pts,shm,mqueue} "$root"/run/{lock,netns} "$root/old"
mount -t devpts -o mode=600,ptmxmode=666,newinstance devpts "$root/dev/pts"
mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm"
ln -s pts/ptmx "$root/dev/ptmx"
ln -s /proc/self/fd "$root/dev/fd"
for number in 0:stdin 1:stdout 2:stderr; do
	ln -s "/proc/self/fd/${number%%:*}" "$root/dev/${number##*:}"
done
cd "$root"
pivot_root . old
umount -l /old
rmdir /old
touch /run/ready
trap 'exit 0' TERM
while :; do
	sleep 1 &
	wait $! || true
done
