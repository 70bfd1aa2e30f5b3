package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"
)

const (
	listLimit    = 100 // objects in an answer: the largest is what memory is needed for
	watchSeconds = 300
	retryPause   = 500 * time.Millisecond
)

// An object has the fields that DNS needs of Services, Endpoints and Namespaces. Others are not kept.
type object struct {
	Metadata struct{ Name, Namespace, ResourceVersion string }
	Spec     struct {
		Type, ClusterIP, ExternalName string
		ClusterIPs                    []string
		Ports                         []objectPort
	}
	Subsets []struct {
		Addresses []struct{ IP, Hostname string } // those that are ready, or published although they are not
		Ports     []objectPort
	}
}

type objectPort struct {
	Name, Protocol string
	Port           int
}

// A source is one kind of object and the table that it fills.
type source struct {
	path   string
	synced atomic.Bool
	clear  func()
	put    func(key string, one object)
	remove func(key string)
}

func newRecords() *records {
	r := &records{}
	r.sources = []*source{
		{
			path:   "/api/v1/namespaces",
			clear:  func() { r.namespaces = map[string]bool{} },
			put:    func(_ string, one object) { r.namespaces[one.Metadata.Name] = true },
			remove: func(key string) { delete(r.namespaces, key[1:]) }, // it is in no namespace itself
		},
		{
			path:   "/api/v1/services",
			clear:  func() { r.services = map[string]service{} },
			put:    func(key string, one object) { r.services[key] = toService(one) },
			remove: func(key string) { delete(r.services, key) },
		},
		{
			path:   "/api/v1/endpoints",
			clear:  func() { r.endpoints = map[string][]endpoint{} },
			put:    func(key string, one object) { r.endpoints[key] = toEndpoints(one) },
			remove: func(key string) { delete(r.endpoints, key) },
		},
	}
	for _, each := range r.sources {
		each.clear()
	}
	return r
}

func toService(one object) service {
	made := service{ports: toPorts(one.Spec.Ports)}
	switch {
	case one.Spec.Type == "ExternalName":
		made.external = one.Spec.ExternalName
	case one.Spec.ClusterIP != "None":
		made.addresses = one.Spec.ClusterIPs
		if len(made.addresses) == 0 && one.Spec.ClusterIP != "" {
			made.addresses = []string{one.Spec.ClusterIP}
		}
	}
	return made
}

func toEndpoints(one object) []endpoint {
	made := []endpoint{}
	for _, subset := range one.Subsets {
		ports := toPorts(subset.Ports)
		for _, address := range subset.Addresses {
			made = append(made, endpoint{address: address.IP, hostname: address.Hostname, ports: ports})
		}
	}
	return made
}

func toPorts(given []objectPort) []port {
	made := make([]port, 0, len(given))
	for _, each := range given {
		made = append(made, port{name: each.Name, protocol: each.Protocol, number: each.Port})
	}
	return made
}

// synced is true once every kind of object has been listed.
func (r *records) synced() bool {
	for _, each := range r.sources {
		if !each.synced.Load() {
			return false
		}
	}
	return true
}

// watch follows the API server until the context ends. While that is away, the records stay as they are.
func (r *records) watch(ctx context.Context, client *apiClient) {
	var running sync.WaitGroup
	for _, each := range r.sources {
		running.Add(1)
		go func(one *source) {
			defer running.Done()
			said := ""
			for ctx.Err() == nil {
				if err := r.follow(ctx, client, one); err != nil && ctx.Err() == nil && err.Error() != said {
					said = err.Error()
					log.Printf("%s: %v", one.path, err)
				}
				pause(ctx)
			}
		}(each)
	}
	running.Wait()
}

func pause(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(retryPause):
	}
}

// follow lists once and watches from there, until the server no longer knows the version from which to go on.
func (r *records) follow(ctx context.Context, client *apiClient, one *source) error {
	version, err := r.list(ctx, client, one)
	for err == nil && ctx.Err() == nil {
		if version, err = r.events(ctx, client, one, version); err == nil {
			pause(ctx)
		}
	}
	return err
}

// list replaces a table by what there is, and returns the version of that.
func (r *records) list(ctx context.Context, client *apiClient, one *source) (string, error) {
	objects, next := map[string]object{}, ""
	for {
		var page struct {
			Metadata struct{ ResourceVersion, Continue string }
			Items    []object
		}
		if err := client.get(ctx, fmt.Sprintf("%s?limit=%d&continue=%s", one.path, listLimit, url.QueryEscape(next)), &page); err != nil {
			return "", err
		}
		for _, each := range page.Items {
			objects[keyOf(each)] = each
		}
		if next = page.Metadata.Continue; next != "" {
			continue
		}
		r.lock.Lock()
		defer r.lock.Unlock()
		one.clear()
		for key, each := range objects {
			one.put(key, each)
		}
		one.synced.Store(true)
		return page.Metadata.ResourceVersion, nil
	}
}

// events applies changes until the server ends the watch, and returns the version from which another may go on.
func (r *records) events(ctx context.Context, client *apiClient, one *source, version string) (string, error) {
	bounded, cancel := context.WithTimeout(ctx, (watchSeconds+30)*time.Second)
	defer cancel()
	query := fmt.Sprintf("%s?watch=1&allowWatchBookmarks=true&resourceVersion=%s&timeoutSeconds=%d", one.path, url.QueryEscape(version), watchSeconds)
	body, err := client.send(bounded, http.MethodGet, query, "", nil)
	if err != nil {
		return version, err
	}
	defer body.Close()
	for decoder := json.NewDecoder(body); ; {
		var event struct {
			Type   string
			Object object
		}
		if decoder.Decode(&event) != nil {
			return version, nil // the watch is over; the next one says what is wrong, if anything is
		}
		if event.Type == "ERROR" {
			return version, fmt.Errorf("the watch from version %s cannot go on", version)
		}
		version = event.Object.Metadata.ResourceVersion
		r.lock.Lock()
		switch event.Type {
		case "ADDED", "MODIFIED":
			one.put(keyOf(event.Object), event.Object)
		case "DELETED":
			one.remove(keyOf(event.Object))
		}
		r.lock.Unlock()
	}
}

func keyOf(one object) string { return one.Metadata.Namespace + "/" + one.Metadata.Name }
