package main

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/miekg/dns"
)

const (
	udpBytes   = 512  // what a client takes that does not say more (RFC 1035)
	mostBytes  = 4096 // of an answer by UDP, whatever the client says
	ioTimeout  = 5 * time.Second
	startLimit = 5 * time.Second // CoreDNS waits as long for the API server before it answers
)

// runDNS answers for a cluster as its CoreDNS does. Names of other domains do not exist: nothing is forwarded, since a
// node of a local cloud resolves names from files. --hosts names such a file whose names exist too.
func runDNS(ctx context.Context, arguments []string) error {
	given := parseOptions(arguments)
	client, err := clientFor(given.last("kubeconfig", ""))
	if err != nil {
		return err
	}
	known := newRecords()
	watched := make(chan struct{})
	go func() {
		known.watch(ctx, client)
		close(watched)
	}()
	waitFor(ctx, known.synced, startLimit)

	leaving := &atomic.Bool{}
	failures := make(chan error, 4)
	start := func(serve func() error) { go func() { failures <- serve() }() }
	server := &dnsServer{zone: strings.ToLower(dns.Fqdn(given.last("domain", "cluster.local"))), records: known}
	if file := given.last("hosts", ""); file != "" {
		server.hosts = &hostsFile{path: file}
	}
	address := given.last("address", ":53")
	listeners := []*dns.Server{
		{Addr: address, Net: "udp", Handler: server, ReadTimeout: ioTimeout, WriteTimeout: ioTimeout},
		{Addr: address, Net: "tcp", Handler: server, ReadTimeout: ioTimeout, WriteTimeout: ioTimeout},
	}
	for _, each := range listeners {
		start(each.ListenAndServe)
	}
	serving, stop := context.WithCancel(context.Background())
	defer stop()
	if at := given.last("health-address", ":8080"); at != "" {
		start(func() error { return serveHTTP(serving, at, map[string]http.HandlerFunc{"/health": sayOK}) })
	}
	if at := given.last("ready-address", ":8181"); at != "" {
		ready := func(writer http.ResponseWriter, request *http.Request) {
			if leaving.Load() || !known.synced() {
				http.Error(writer, "kubernetes", http.StatusServiceUnavailable)
				return
			}
			sayOK(writer, request)
		}
		start(func() error { return serveHTTP(serving, at, map[string]http.HandlerFunc{"/ready": ready}) })
	}
	log.Printf("DNS for %s at %s", server.zone, address)
	select {
	case err := <-failures:
		return err
	case <-ctx.Done():
	}
	// Pods still ask until every node knows that this server is going.
	leaving.Store(true)
	if pause, err := time.ParseDuration(given.last("lameduck", "5s")); err == nil {
		time.Sleep(pause)
	}
	for _, each := range listeners {
		_ = each.Shutdown()
	}
	<-watched
	return nil
}

func clientFor(kubeconfig string) (*apiClient, error) {
	if kubeconfig != "" {
		return kubeconfigClient(kubeconfig)
	}
	return inClusterClient()
}

func waitFor(ctx context.Context, condition func() bool, most time.Duration) {
	for end := time.Now().Add(most); !condition() && time.Now().Before(end) && ctx.Err() == nil; {
		time.Sleep(20 * time.Millisecond)
	}
}

func sayOK(writer http.ResponseWriter, _ *http.Request) { fmt.Fprint(writer, "OK") }

type dnsServer struct {
	zone    string
	records *records
	hosts   *hostsFile
}

// ServeDNS answers one question, with the name as it was asked and whatever the letters' case.
func (s *dnsServer) ServeDNS(writer dns.ResponseWriter, request *dns.Msg) {
	message := new(dns.Msg)
	message.SetReply(request)
	message.RecursionAvailable, message.Compress = true, true
	if len(request.Question) != 1 || request.Opcode != dns.OpcodeQuery || request.Question[0].Qclass != dns.ClassINET {
		message.Rcode = dns.RcodeRefused
	} else {
		s.fill(message, request.Question[0])
	}
	size := dns.MaxMsgSize
	edns := request.IsEdns0()
	if writer.LocalAddr().Network() == "udp" {
		size = udpBytes
		if edns != nil && int(edns.UDPSize()) > size {
			size = int(edns.UDPSize())
		}
		if size > mostBytes {
			size = mostBytes
		}
	}
	if edns != nil {
		message.SetEdns0(mostBytes, false)
	}
	fit(message, size)
	_ = writer.WriteMsg(message)
}

func (s *dnsServer) fill(message *dns.Msg, question dns.Question) {
	name := strings.ToLower(question.Name)
	found, own := s.records.resolve(name, question.Qtype, s.zone)
	switch {
	case own && !s.records.synced():
		message.Rcode = dns.RcodeServerFailure
	case own:
		message.Authoritative = true
		message.Rcode, message.Answer, message.Extra = found.code, found.answers, found.extras
		for _, each := range found.answers {
			if each.Header().Name == name {
				each.Header().Name = question.Name
			}
		}
		if len(found.answers) == 0 {
			message.Ns = []dns.RR{startOfAuthority(s.zone)}
		}
	default:
		message.Answer, message.Rcode = s.hosts.resolve(question.Name, name, question.Qtype)
	}
}
