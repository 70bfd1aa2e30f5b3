// Holdfast's stand-ins for programs that run in pods of an EKS cluster and whose images no local machine can pull.
//
// Usage: holdfast-stand-ins COMMAND [options]. Options that only the real programs have are ignored, so that the charts'
// own arguments may stay as they are.
//
// Each command is a file or a few of this folder. All speak the real protocols; what they lack is the hardware.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"sort"
	"strings"
	"syscall"
)

// A command runs until the context ends. It gets its arguments without its own name.
type command func(ctx context.Context, arguments []string) error

var commands = map[string]command{
	"device-plugin":         runDevicePlugin,
	"dns":                   runDNS,
	"fsx-csi":               runFsxCsi,
	"livenessprobe":         runLivenessProbe,
	"node-driver-registrar": runNodeDriverRegistrar,
	"pause":                 runPause,
}

func main() {
	// Hundreds of these run on one machine: little memory is worth more here than little garbage collection.
	debug.SetGCPercent(25)
	if runtime.GOMAXPROCS(0) > 2 {
		runtime.GOMAXPROCS(2)
	}
	log.SetFlags(log.LstdFlags | log.LUTC)
	name, arguments := "", []string{}
	if len(os.Args) > 1 {
		name, arguments = os.Args[1], os.Args[2:]
	}
	run, known := commands[name]
	if !known {
		fmt.Fprintf(os.Stderr, "usage: holdfast-stand-ins COMMAND [options], not %q; commands are %s\n", name, strings.Join(commandNames(), ", "))
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if err := run(ctx, arguments); err != nil {
		log.Printf("%s: %v", name, err)
		os.Exit(1)
	}
}

func commandNames() []string {
	names := make([]string, 0, len(commands))
	for name := range commands {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}
