package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"google.golang.org/grpc"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

const patience = 20 * time.Second

// A kubelet of a test: the registration service at the path that kubelets have, over a real socket.
type testKubelet struct {
	asked chan *pluginapi.RegisterRequest
}

func (k *testKubelet) Register(_ context.Context, request *pluginapi.RegisterRequest) (*pluginapi.Empty, error) {
	k.asked <- request
	return &pluginapi.Empty{}, nil
}

func (k *testKubelet) start(t *testing.T, directory string) func() {
	t.Helper()
	stop, err := serveUnix(filepath.Join(directory, "kubelet.sock"), func(server *grpc.Server) {
		pluginapi.RegisterRegistrationServer(server, k)
	})
	if err != nil {
		t.Fatal(err)
	}
	return stop
}

func (k *testKubelet) next(t *testing.T) *pluginapi.RegisterRequest {
	t.Helper()
	select {
	case request := <-k.asked:
		return request
	case <-time.After(patience):
		t.Fatal("no registration")
		return nil
	}
}

// healthy waits until the plugin's stream says that as many of its devices are healthy.
func healthy(stream pluginapi.DevicePlugin_ListAndWatchClient, want int) error {
	for {
		told, err := stream.Recv()
		if err != nil {
			return err
		}
		count := 0
		for _, each := range told.Devices {
			if each.Health == pluginapi.Healthy {
				count++
			}
		}
		if count == want {
			return nil
		}
	}
}

func TestAPluginFollowsTheKubeletThroughItsRestarts(t *testing.T) {
	directory := t.TempDir()
	kubelet := &testKubelet{asked: make(chan *pluginapi.RegisterRequest, 8)}
	stopKubelet := kubelet.start(t, directory)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() {
		ended <- runDevicePlugin(ctx, []string{"--resource", "nvidia.com/gpu", "--plugin-directory", directory})
	}()

	// The node says only now what it has.
	told := filepath.Join(directory, nodeFolder)
	marks := filepath.Join(told, "nvidia.com_gpu")
	if err := os.MkdirAll(marks, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(told, acceleratorsFile), []byte(`{"nvidia.com/gpu": 8}`), 0o644); err != nil {
		t.Fatal(err)
	}
	first := kubelet.next(t)
	watching, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	connection, err := dialUnix(watching, filepath.Join(directory, first.Endpoint))
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	stream, err := pluginapi.NewDevicePluginClient(connection).ListAndWatch(watching, &pluginapi.Empty{})
	if err == nil {
		err = healthy(stream, 8)
	}
	mark := filepath.Join(marks, "3.unhealthy")
	for _, step := range []func() error{
		func() error { return os.WriteFile(mark, nil, 0o644) },
		func() error { return healthy(stream, 7) },
		func() error { return os.Remove(mark) },
		func() error { return healthy(stream, 8) },
	} {
		if err == nil {
			err = step()
		}
	}
	if err != nil {
		t.Fatal(err)
	}

	// A kubelet that starts removes all sockets, those of plugins too.
	stopKubelet()
	if err := os.Remove(filepath.Join(directory, first.Endpoint)); err != nil {
		t.Fatal(err)
	}
	defer kubelet.start(t, directory)()
	again := kubelet.next(t)
	if _, err := os.Stat(filepath.Join(directory, again.Endpoint)); err != nil || again.ResourceName != "nvidia.com/gpu" {
		t.Fatalf("%v: %v", again, err)
	}

	stop()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(directory, again.Endpoint)); !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("the plugin left its socket: %v", err)
	}
}
