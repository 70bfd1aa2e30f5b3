package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// runPause waits for the end and reaps: a sandbox is the first process of its pod, or of a shared process namespace.
func runPause(ctx context.Context, _ []string) error {
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGCHLD)
	for {
		for {
			if pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil); pid <= 0 || err != nil {
				break
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ended:
		}
	}
}
