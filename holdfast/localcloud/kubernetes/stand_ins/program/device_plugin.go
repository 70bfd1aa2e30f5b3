package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"google.golang.org/grpc"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

const (
	// Below the kubelet's folder of plugins, which is all of the node that the pods of all device plugins see. The kubelet
	// removes what it finds there when it starts, but no folders.
	nodeFolder       = "holdfast"
	acceleratorsFile = "accelerators.json"
	lookEvery        = time.Second
	registerTimeout  = 5 * time.Second
)

// runDevicePlugin serves the device plugin API v1beta1 for each --resource, as many devices as --count or the node's
// file says. A resource that the node lacks is not registered; the program then waits, as a DaemonSet's pod has to.
func runDevicePlugin(ctx context.Context, arguments []string) error {
	given := parseOptions(arguments)
	if len(given["resource"]) == 0 {
		return errors.New("--resource is missing: the name of an extended resource, as nvidia.com/gpu")
	}
	fixed, err := strconv.Atoi(given.last("count", "0"))
	if err != nil || fixed < 0 {
		return fmt.Errorf("--count %q is not a number of devices", given.last("count", ""))
	}
	directory := given.last("plugin-directory", pluginapi.DevicePluginPath)
	told := given.last("node-directory", filepath.Join(directory, nodeFolder))
	var running sync.WaitGroup
	for _, resource := range given["resource"] {
		plugin := &devicePlugin{
			resource:  resource,
			count:     fixed,
			told:      told,
			directory: directory,
		}
		running.Add(1)
		go func() {
			defer running.Done()
			plugin.follow(ctx)
		}()
	}
	running.Wait()
	return nil
}

// A devicePlugin follows the kubelet: it registers with each that listens anew, for as long as it runs.
type devicePlugin struct {
	resource  string
	count     int    // 0: the node's file says how many
	told      string // what the node says of its devices: how many there are, and which are unhealthy
	directory string // of the kubelet's socket and of the plugins'

	stop func() // ends the present server
}

// follow looks at the kubelet's socket. A kubelet that starts removes every plugin's socket and makes its own anew, so a
// socket that is another one means: serve and register again. What fails is tried again, and said once.
func (p *devicePlugin) follow(ctx context.Context) {
	defer p.close()
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	var registered socketIdentity
	said := ""
	for {
		if present := identify(p.kubelet()); present != registered && present != (socketIdentity{}) {
			if count, err := p.register(ctx); err == nil {
				registered, said = present, ""
				log.Printf("registered %d devices of %s", count, p.resource)
			} else if said != err.Error() && ctx.Err() == nil {
				said = err.Error()
				log.Printf("%s is not registered: %v", p.resource, err)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

func (p *devicePlugin) kubelet() string { return filepath.Join(p.directory, "kubelet.sock") }

// register serves the devices and tells the kubelet of them. It returns how many there are.
func (p *devicePlugin) register(ctx context.Context) (int, error) {
	p.close()
	count := p.count
	if count == 0 {
		var err error
		if count, err = countOn(filepath.Join(p.told, acceleratorsFile), p.resource); err != nil {
			return 0, err
		}
	}
	if count == 0 {
		return 0, errors.New("this node has no such device")
	}
	endpoint := "holdfast-" + strings.NewReplacer("/", "-", ".", "-").Replace(p.resource) + ".sock"
	stop, err := serveUnix(filepath.Join(p.directory, endpoint), func(server *grpc.Server) {
		pluginapi.RegisterDevicePluginServer(server, &deviceServer{inventory: newInventory(p.resource, count), told: p.told})
	})
	if err != nil {
		return 0, err
	}
	p.stop = stop
	bounded, cancel := context.WithTimeout(ctx, registerTimeout)
	defer cancel()
	connection, err := dialUnix(bounded, p.kubelet())
	if err != nil {
		return 0, err
	}
	defer connection.Close()
	_, err = pluginapi.NewRegistrationClient(connection).Register(bounded, &pluginapi.RegisterRequest{
		Version:      pluginapi.Version,
		Endpoint:     endpoint,
		ResourceName: p.resource,
		Options:      deviceOptions,
	})
	return count, err
}

func (p *devicePlugin) close() {
	if p.stop != nil {
		p.stop()
		p.stop = nil
	}
}

// A socketIdentity tells one socket file from another at the same path: inode numbers alone are used again.
type socketIdentity struct {
	inode   uint64
	changed syscall.Timespec
}

// identify is zero where there is no socket.
func identify(path string) socketIdentity {
	var found syscall.Stat_t
	if err := syscall.Stat(path, &found); err != nil {
		return socketIdentity{}
	}
	return socketIdentity{inode: found.Ino, changed: found.Ctim}
}
