package main

import (
	"context"
	"net"
	"os"

	"google.golang.org/grpc"
)

// serveUnix serves gRPC on a socket of its own, replacing what was at its path, until the returned function is called.
func serveUnix(path string, register func(*grpc.Server)) (func(), error) {
	if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
		return nil, err
	}
	listener, err := net.Listen("unix", path)
	if err != nil {
		return nil, err
	}
	server := grpc.NewServer()
	register(server)
	go func() { _ = server.Serve(listener) }()
	return server.Stop, nil // it closes the listener, which removes the socket's file
}

// dialUnix connects to a gRPC server on a socket, within the context's time.
func dialUnix(ctx context.Context, path string) (*grpc.ClientConn, error) {
	return grpc.DialContext(ctx, path, grpc.WithInsecure(), grpc.WithBlock(),
		grpc.WithContextDialer(func(inner context.Context, address string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(inner, "unix", address)
		}))
}
