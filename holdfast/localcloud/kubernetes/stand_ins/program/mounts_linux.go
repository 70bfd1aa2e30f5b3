package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"unsafe"
)

type linuxMounts struct{}

// mounted looks into the table of mounts: a bind mount has the device of its source, so devices do not tell it.
func (linuxMounts) mounted(target string) (bool, error) {
	table, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return false, err
	}
	return mountedIn(string(table), filepath.Clean(target)), nil
}

var mountinfoEscapes = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)

func mountedIn(table, target string) bool {
	for _, line := range strings.Split(table, "\n") {
		if fields := strings.Fields(line); len(fields) > 4 && mountinfoEscapes.Replace(fields[4]) == target {
			return true
		}
	}
	return false
}

// System calls of Linux 5.2 and 5.12 (asm-generic/unistd.h, linux/mount.h, linux/fcntl.h) that Go 1.19 has no names for.
const (
	sysOpenTree, sysMoveMount, sysMountSetattr      = 428, 429, 442
	openTreeClone, openTreeCloexec, moveFromNothing = 1, syscall.O_CLOEXEC, 4
	atEmptyPath                                     = 0x1000
)

var atWorkingDirectory = -100

// bind makes a mount, gives it its attributes and only then puts it at its place: the node's namespace, to which it
// propagates, gets it as it is then, and would never hear of a later change.
func (linuxMounts) bind(source, target string, wanted attributes) error {
	from, err := syscall.BytePtrFromString(source)
	if err != nil {
		return err
	}
	to, err := syscall.BytePtrFromString(target)
	if err != nil {
		return err
	}
	empty := new(byte)
	tree, _, failed := syscall.Syscall(sysOpenTree, uintptr(atWorkingDirectory), uintptr(unsafe.Pointer(from)), openTreeClone|openTreeCloexec)
	if failed != 0 {
		return failed
	}
	defer syscall.Close(int(tree))
	if wanted != (attributes{}) {
		attr := [4]uint64{wanted.set, wanted.clear} // and neither propagation nor a user namespace
		_, _, failed = syscall.Syscall6(sysMountSetattr, tree, uintptr(unsafe.Pointer(empty)), atEmptyPath,
			uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr), 0)
		if failed != 0 {
			return failed
		}
	}
	_, _, failed = syscall.Syscall6(sysMoveMount, tree, uintptr(unsafe.Pointer(empty)), uintptr(atWorkingDirectory),
		uintptr(unsafe.Pointer(to)), moveFromNothing, 0)
	if failed != 0 {
		return failed
	}
	return nil
}

func (linuxMounts) unmount(target string) error {
	if err := syscall.Unmount(target, 0); err != nil {
		return fmt.Errorf("unmount failed: %w", err)
	}
	return nil
}
