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
	bind(source, target string, wanted attributes) error
	unmount(target string) error
}

var lustreSource = regexp.MustCompile(`^([^@:/]+)@tcp[0-9]*:/([^/]+)$`)

// Options of mount(8) that a single mount can have, as mount_setattr(2) takes them (linux/mount.h).
const (
	attrReadOnly, attrNoSUID, attrNoDev, attrNoExec    = 0x1, 0x2, 0x4, 0x8
	attrNoAtime, attrStrictAtime, attrAtime, attrNoDir = 0x10, 0x20, 0x70, 0x80
)

// attributes are what a mount gets and what is taken from it; it keeps the others of its source.
type attributes struct{ set, clear uint64 }

var mountAttributes = map[string]attributes{
	"ro": {set: attrReadOnly}, "rw": {clear: attrReadOnly},
	"nosuid": {set: attrNoSUID}, "suid": {clear: attrNoSUID},
	"nodev": {set: attrNoDev}, "dev": {clear: attrNoDev},
	"noexec": {set: attrNoExec}, "exec": {clear: attrNoExec},
	"nodiratime": {set: attrNoDir}, "diratime": {clear: attrNoDir},
	"noatime": {set: attrNoAtime, clear: attrAtime}, "strictatime": {set: attrStrictAtime, clear: attrAtime},
	"atime": {clear: attrAtime}, "relatime": {clear: attrAtime}, "norelatime": {clear: attrAtime},
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
	wanted, err := attributesOf(options)
	if err != nil {
		return fail(syscall.EINVAL, fmt.Sprintf("mount.lustre: mount %s at %s failed: Invalid argument\n"+
			"This may have multiple causes.\nIs '%s' the correct filesystem name?\nAre the mount options correct?\n"+
			"Check the syslog for more info.\n", source, target, found[2]))
	}
	if err := with.bind(directory, target, wanted); err != nil {
		return fail(syscall.EIO, fmt.Sprintf("mount.lustre: mount %s at %s failed: %v\n", source, target, err))
	}
	return nil
}

// attributesOf takes one option after the other: the last that speaks of something decides it.
func attributesOf(options []string) (attributes, error) {
	all := attributes{}
	for _, given := range options {
		for _, option := range strings.Split(given, ",") {
			one, known := mountAttributes[option]
			if !known && !ignoredMountOptions[option] && !strings.HasPrefix(strings.ToLower(option), "x-") {
				return attributes{}, fmt.Errorf("%q is no option of a Lustre client", option)
			}
			all.set = all.set&^one.clear | one.set
			all.clear = all.clear&^one.set | one.clear | one.set&attrAtime
		}
	}
	return all, nil
}

func isDirectory(path string) bool {
	found, err := os.Lstat(path)
	return err == nil && found.IsDir()
}
