package main

import (
	"context"
	"encoding/json"
	"log"
	"net/http"
	"time"
)

const (
	taintTries   = 10
	taintTimeout = 30 * time.Second
)

// removeTaint takes a taint from the node on which this runs: a driver's way to say that pods may come. It tries as
// often as AWS's driver does, with twice the pause each time, and gives up silently where there is no cluster.
func removeTaint(ctx context.Context, node, key string) {
	client, err := inClusterClient()
	if node == "" || err != nil {
		return
	}
	pause := 500 * time.Millisecond
	for try := 0; try < taintTries; try++ {
		if err = untaint(ctx, client, node, key); err == nil {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
			pause *= 2
		}
	}
	log.Printf("the taint %s stays on %s: %v", key, node, err)
}

func untaint(ctx context.Context, client *apiClient, node, key string) error {
	bounded, cancel := context.WithTimeout(ctx, taintTimeout)
	defer cancel()
	var found struct {
		Spec struct{ Taints []map[string]interface{} }
	}
	path := "/api/v1/nodes/" + node
	if err := client.get(bounded, path, &found); err != nil {
		return err
	}
	kept := []map[string]interface{}{}
	for _, taint := range found.Spec.Taints {
		if taint["key"] != key {
			kept = append(kept, taint)
		}
	}
	if len(kept) == len(found.Spec.Taints) {
		return nil
	}
	patch, err := json.Marshal([]map[string]interface{}{
		{"op": "test", "path": "/spec/taints", "value": found.Spec.Taints},
		{"op": "replace", "path": "/spec/taints", "value": kept},
	})
	if err != nil {
		return err
	}
	body, err := client.send(bounded, http.MethodPatch, path, "application/json-patch+json", patch)
	if err == nil {
		_ = body.Close()
		log.Printf("removed the taint %s from %s", key, node)
	}
	return err
}
