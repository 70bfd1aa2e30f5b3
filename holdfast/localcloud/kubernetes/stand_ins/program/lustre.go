package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
)

// mounts is what the CSI driver asks of the kernel.
type mounts interface {
	mounted(target string) (bool, error)
	bind(source, target string, flags uintptr) error
	unmount(target string) error
}

var lustreSource = regexp.MustCompile(`^([^@:/]+)@tcp[0-9]*:/([^/]+)$`)

// Options of mount(8) that are flags of mount(2), and what they take away again. A bind mount keeps no other state.
var mountFlags = map[string]struct{ set, clear uintptr }{
	"ro": {set: syscall.MS_RDONLY}, "rw": {clear: syscall.MS_RDONLY},
	"nosuid": {set: syscall.MS_NOSUID}, "suid": {clear: syscall.MS_NOSUID},
	"nodev": {set: syscall.MS_NODEV}, "dev": {clear: syscall.MS_NODEV},
	"noexec": {set: syscall.MS_NOEXEC}, "exec": {clear: syscall.MS_NOEXEC},
	"noatime": {set: syscall.MS_NOATIME}, "atime": {clear: syscall.MS_NOATIME},
	"nodiratime": {set: syscall.MS_NODIRATIME}, "diratime": {clear: syscall.MS_NODIRATIME},
	"relatime": {set: syscall.MS_RELATIME}, "norelatime": {clear: syscall.MS_RELATIME},
}

// Options that a Lustre client or mount(8) takes and that change nothing here: mount.lustre(8) of Lustre 2.16, mount(8) of
// util-linux 2.38, read 2026-11. Every option that starts with "x-" or "X-" is mount(8)'s own.
var ignoredMountOptions = map[string]bool{
	"_netdev": true, "acl": true, "always_ping": true, "async": true, "auto": true, "checksum": true, "defaults": true,
	"flock": true, "lazystatfs": true, "localflock": true, "noacl": true, "noauto": true, "nochecksum": true,
	"noflock": true, "nofail": true, "nolazystatfs": true, "nouser_fid2path": true, "nouser_xattr": true,
	"noverbose": true, "sync": true, "user_fid2path": true, "user_xattr": true, "verbose": true, "32bitapi": true,
}

// mountLustre mounts <DNS name>@tcp:/<mount name> as far as the node can reach it: as a bind mount of the directory in
// which the local account keeps that file system. It fails in the words of mount(8) and of Lustre's utils/mount_lustre.c,
// as a driver sees them that runs "mount -t lustre".
func mountLustre(with mounts, root, source, target string, options []string) error {
	fail := func(code syscall.Errno, output string) error {
		arguments := "-t lustre"
		if len(options) > 0 {
			arguments += " -o " + strings.Join(options, ",")
		}
		return fmt.Errorf("mount failed: exit status %d\nMounting command: mount\nMounting arguments: %s %s %s\nOutput: %s",
			int(code), arguments, source, target, output)
	}
	found := lustreSource.FindStringSubmatch(source)
	if found == nil || found[1] == "." || found[1] == ".." || !isDirectory(filepath.Join(root, found[1])) {
		node, _, _ := strings.Cut(source, ":")
		return fail(syscall.EINVAL, fmt.Sprintf("mount.lustre: Can't parse NID '%s'\n", node))
	}
	directory := filepath.Join(root, found[1], found[2])
	if found[2] == "." || found[2] == ".." || !isDirectory(directory) {
		return fail(syscall.ENOENT, fmt.Sprintf("mount.lustre: mount %s at %s failed: No such file or directory\n"+
			"Is the MGS specification correct?\nIs the filesystem name correct?\n"+
			"If upgrading, is the copied client log valid? (see upgrade docs)\n", source, target))
	}
	flags, err := flagsOf(options)
	if err != nil {
		return fail(syscall.EINVAL, fmt.Sprintf("mount.lustre: mount %s at %s failed: Invalid argument\n"+
			"This may have multiple causes.\nIs '%s' the correct filesystem name?\nAre the mount options correct?\n"+
			"Check the syslog for more info.\n", source, target, found[2]))
	}
	if err := with.bind(directory, target, flags); err != nil {
		return fail(syscall.EIO, fmt.Sprintf("mount.lustre: mount %s at %s failed: %v\n", source, target, err))
	}
	return nil
}

func flagsOf(options []string) (uintptr, error) {
	var flags uintptr
	for _, given := range options {
		for _, option := range strings.Split(given, ",") {
			flag, known := mountFlags[option]
			if !known && !ignoredMountOptions[option] && !strings.HasPrefix(strings.ToLower(option), "x-") {
				return 0, fmt.Errorf("%q is no option of a Lustre client", option)
			}
			flags = flags&^flag.clear | flag.set
		}
	}
	return flags, nil
}

func isDirectory(path string) bool {
	found, err := os.Lstat(path)
	return err == nil && found.IsDir()
}

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

// bind applies the flags in a second step, as mount(2) wants it; if that fails nothing stays mounted.
func (linuxMounts) bind(source, target string, flags uintptr) error {
	if err := syscall.Mount(source, target, "", syscall.MS_BIND, ""); err != nil {
		return err
	}
	if flags == 0 {
		return nil
	}
	err := syscall.Mount("", target, "", syscall.MS_REMOUNT|syscall.MS_BIND|flags, "")
	if err != nil {
		_ = syscall.Unmount(target, syscall.MNT_DETACH)
	}
	return err
}

func (linuxMounts) unmount(target string) error {
	if err := syscall.Unmount(target, 0); err != nil {
		return fmt.Errorf("unmount failed: %w", err)
	}
	return nil
}
