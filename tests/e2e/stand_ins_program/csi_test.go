package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Mounts of a test: what is at which path. A bind that is to fail does.
type testMounts struct {
	at      map[string]attributes
	fails   error
	mounts  int
	waiting chan struct{} // when there is one, a bind waits for it
}

func (m *testMounts) mounted(target string) (bool, error) {
	_, is := m.at[target]
	return is, nil
}

func (m *testMounts) bind(_, target string, wanted attributes) error {
	if m.waiting != nil {
		m.waiting <- struct{}{}
		<-m.waiting
	}
	if m.fails != nil {
		return m.fails
	}
	m.mounts++
	m.at[target] = wanted
	return nil
}

func (m *testMounts) unmount(target string) error {
	delete(m.at, target)
	return nil
}

func newTestNode(t *testing.T) (*fsxNode, *testMounts, *csi.NodePublishVolumeRequest) {
	t.Helper()
	root := t.TempDir()
	if err := os.MkdirAll(filepath.Join(root, "fs-1.example", "abcdef"), 0o755); err != nil {
		t.Fatal(err)
	}
	mounts := &testMounts{at: map[string]attributes{}}
	return &fsxNode{root: root, mounts: mounts}, mounts, &csi.NodePublishVolumeRequest{
		VolumeId: "fs-1", TargetPath: filepath.Join(t.TempDir(), "mount"),
		VolumeContext: map[string]string{"dnsname": "fs-1.example", "mountname": "abcdef"},
		VolumeCapability: &csi.VolumeCapability{
			AccessMode: &csi.VolumeCapability_AccessMode{Mode: csi.VolumeCapability_AccessMode_MULTI_NODE_MULTI_WRITER},
			AccessType: &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{MountFlags: []string{"flock", "noatime"}}},
		},
	}
}

func TestAVolumeIsMountedOnceHoweverOftenItIsPublished(t *testing.T) {
	node, mounts, request := newTestNode(t)
	request.Readonly = true
	for range [2]int{} {
		if _, err := node.NodePublishVolume(context.Background(), request); err != nil {
			t.Fatal(err)
		}
	}
	want := attributes{set: attrReadOnly | attrNoAtime, clear: attrAtime}
	if mounts.mounts != 1 || mounts.at[request.TargetPath] != want {
		t.Fatalf("%d mounts, %v", mounts.mounts, mounts.at)
	}
	unpublish := &csi.NodeUnpublishVolumeRequest{VolumeId: request.VolumeId, TargetPath: request.TargetPath}
	for range [2]int{} {
		if _, err := node.NodeUnpublishVolume(context.Background(), unpublish); err != nil || len(mounts.at) != 0 {
			t.Fatalf("%v, %v", mounts.at, err)
		}
	}
}

func TestWhatAWSsDriverRefusesIsRefusedInItsWords(t *testing.T) {
	for words, change := range map[string]func(*csi.NodePublishVolumeRequest){
		"Volume ID not provided":         func(r *csi.NodePublishVolumeRequest) { r.VolumeId = "" },
		"dnsname is not provided":        func(r *csi.NodePublishVolumeRequest) { r.VolumeContext = nil },
		"Target path not provided":       func(r *csi.NodePublishVolumeRequest) { r.TargetPath = "" },
		"Volume capability not provided": func(r *csi.NodePublishVolumeRequest) { r.VolumeCapability = nil },
		"Volume capability not supported": func(r *csi.NodePublishVolumeRequest) {
			r.VolumeCapability.AccessMode.Mode = csi.VolumeCapability_AccessMode_MULTI_NODE_READER_ONLY
		},
	} {
		node, mounts, request := newTestNode(t)
		change(request)
		_, err := node.NodePublishVolume(context.Background(), request)
		if status.Code(err) != codes.InvalidArgument || status.Convert(err).Message() != words || mounts.mounts != 0 {
			t.Errorf("%q: got %v", words, err)
		}
	}
}

func TestAFileSystemThatCannotBeMountedFailsAsMountLustreDoes(t *testing.T) {
	for words, change := range map[string]func(*csi.NodePublishVolumeRequest, *testMounts){
		"mount.lustre: Can't parse NID 'fs-2.example@tcp'": func(r *csi.NodePublishVolumeRequest, _ *testMounts) { r.VolumeContext["dnsname"] = "fs-2.example" },
		"mount.lustre: Can't parse NID '..@tcp'":           func(r *csi.NodePublishVolumeRequest, _ *testMounts) { r.VolumeContext["dnsname"] = ".." },
		"mount.lustre: Can't parse NID 'a/b@tcp'":          func(r *csi.NodePublishVolumeRequest, _ *testMounts) { r.VolumeContext["dnsname"] = "a/b" },
		"Is the filesystem name correct?":                  func(r *csi.NodePublishVolumeRequest, _ *testMounts) { delete(r.VolumeContext, "mountname") },
		"Are the mount options correct?": func(r *csi.NodePublishVolumeRequest, _ *testMounts) {
			r.VolumeCapability.GetMount().MountFlags = []string{"flock,nosuch"}
		},
		"exit status 5": func(_ *csi.NodePublishVolumeRequest, m *testMounts) { m.fails = errors.New("input/output error") },
	} {
		node, mounts, request := newTestNode(t)
		change(request, mounts)
		_, err := node.NodePublishVolume(context.Background(), request)
		if status.Code(err) != codes.Internal || !strings.Contains(err.Error(), words) {
			t.Errorf("%q: got %v", words, err)
		}
		if _, err := os.Stat(request.TargetPath); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%q: the target is still there: %v", words, err)
		}
	}
}

func TestASecondCallForAVolumeThatIsBeingMountedIsAborted(t *testing.T) {
	node, mounts, request := newTestNode(t)
	mounts.waiting = make(chan struct{})
	first := make(chan error)
	go func() {
		_, err := node.NodePublishVolume(context.Background(), request)
		first <- err
	}()
	<-mounts.waiting
	if _, err := node.NodePublishVolume(context.Background(), request); status.Code(err) != codes.Aborted {
		t.Errorf("got %v", err)
	}
	mounts.waiting <- struct{}{}
	if err := <-first; err != nil {
		t.Fatal(err)
	}
}

func TestTheLastOptionDecides(t *testing.T) {
	for given, want := range map[string]attributes{
		"ro,rw":                          {clear: attrReadOnly},
		"noatime,relatime":               {clear: attrAtime},
		"relatime,noatime":               {set: attrNoAtime, clear: attrAtime},
		"defaults,_netdev,x-systemd.any": {},
	} {
		if got, err := attributesOf([]string{given}); err != nil || got != want {
			t.Errorf("%s: got %v, %v", given, got, err)
		}
	}
}

func TestMountsAreFoundInTheKernelsTable(t *testing.T) {
	table := "36 35 98:0 /mnt1 /a\\040b rw,noatime master:1 - ext3 /dev/root rw\n37 35 98:0 / /c rw - tmpfs x rw\n"
	for path, want := range map[string]bool{"/a b": true, "/c": true, "/a": false, "/mnt1": false} {
		if mountedIn(table, path) != want {
			t.Errorf("%s: expected %v", path, want)
		}
	}
}

func TestAnEndpointIsAUnixSocket(t *testing.T) {
	for given, want := range map[string]string{"unix:/csi/csi.sock": "/csi/csi.sock", "unix:///csi/csi.sock": "/csi/csi.sock", "tcp://1.2.3.4:5": "", "unix:": ""} {
		if got, err := unixPath(given); got != want || (want == "") != (err != nil) {
			t.Errorf("%s: got %q, %v", given, got, err)
		}
	}
}
