package main

import (
	"math/rand"
	"net"
	"strings"
	"sync"

	"github.com/miekg/dns"
)

// What CoreDNS answers with EKS's Corefile ("pods insecure", ttl 30, loadbalance), from the Kubernetes DNS specification
// 1.1.0 (github.com/kubernetes/dns, docs/specification.md) and CoreDNS's plugin "kubernetes"
// (github.com/coredns/coredns, plugin/kubernetes: kubernetes.go, parse.go, handler.go); all read 2026-11.
const (
	schemaVersion  = "1.1.0"
	versionTTL     = 28800
	recordTTL      = 30
	noPort         = -1 // of what has no ports: it has addresses, but no SRV record
	mostExternals  = 8
	serviceSection = "svc"
	podSection     = "pod"
)

type port struct {
	name, protocol string
	number         int
}

type service struct {
	addresses []string // none where it is headless
	external  string   // of a service of type ExternalName
	ports     []port
}

type endpoint struct {
	address, hostname string
	ports             []port
}

// records are what the API server says, by "namespace/name".
type records struct {
	lock       sync.RWMutex
	namespaces map[string]bool
	services   map[string]service
	endpoints  map[string][]endpoint

	sources []*source
}

// A target is one address behind a name, with the name that is its own.
type target struct {
	domain string // without the cluster's domain
	host   string
	port   int
}

// A reply is the sections of an answer. Without answers its code tells "no such name" from "no such record".
type reply struct {
	answers, extras []dns.RR
	code            int
}

// resolve answers a question below the cluster's domain, which both are absolute and in lower case. The second value is
// false for names of another domain.
func (r *records) resolve(name string, kind uint16, zone string) (reply, bool) {
	r.lock.RLock()
	defer r.lock.RUnlock()
	if kind == dns.TypePTR {
		if names := r.namesOf(addressOf(name)); len(names) > 0 {
			found := reply{}
			for _, each := range names {
				found.answers = append(found.answers, &dns.PTR{Hdr: header(name, dns.TypePTR, recordTTL), Ptr: each + "." + zone})
			}
			return found, true
		}
	}
	if name == zone {
		return apex(kind, zone), true
	}
	if !dns.IsSubDomain(zone, name) {
		return reply{}, false
	}
	if base := strings.TrimSuffix(name, "."+zone); base == "dns-version" {
		found := reply{}
		if kind == dns.TypeTXT {
			found.answers = []dns.RR{&dns.TXT{Hdr: header(name, kind, versionTTL), Txt: []string{schemaVersion}}}
		}
		return found, true
	} else if targets, exists := r.targets(strings.Split(base, ".")); exists {
		return r.render(name, kind, zone, targets), true
	}
	return reply{code: dns.RcodeNameError}, true
}

// targets finds what a name stands for: _port._protocol.service.namespace.svc, endpoint.service.namespace.svc,
// service.namespace.svc, 10-1-2-3.namespace.pod and the levels above them, which exist and have no records.
func (r *records) targets(labels []string) ([]target, bool) {
	last := len(labels) - 1
	section := labels[last]
	if section != serviceSection && section != podSection {
		return nil, false
	}
	if last == 0 {
		return nil, true
	}
	namespace := labels[last-1]
	if !r.namespaces[namespace] {
		return nil, false
	}
	if last == 1 {
		return nil, true
	}
	if section == podSection {
		return podTargets(labels)
	}
	var host, name, protocol string
	switch last {
	case 2:
	case 3:
		host = labels[0]
	case 4:
		name, protocol = strings.TrimPrefix(labels[0], "_"), strings.TrimPrefix(labels[1], "_")
	default:
		return nil, false
	}
	found := r.serviceTargets(strings.Join(labels[last-2:], "."), namespace+"/"+labels[last-2], host, name, protocol)
	return found, len(found) > 0
}

func (r *records) serviceTargets(domain, key, host, name, protocol string) []target {
	service, known := r.services[key]
	if !known {
		return nil
	}
	found := []target{}
	if service.external != "" {
		if host == "" {
			found = append(found, target{domain: domain, host: service.external, port: noPort})
		}
		return found
	}
	if len(service.addresses) > 0 && host == "" {
		for _, each := range matching(service.ports, name, protocol) {
			for _, address := range service.addresses {
				found = append(found, target{domain: domain, host: address, port: each.number})
			}
		}
		return found
	}
	for _, each := range r.endpoints[key] {
		own := hostnameOf(each)
		if host != "" && host != own {
			continue
		}
		for _, port := range matching(each.ports, name, protocol) {
			found = append(found, target{domain: own + "." + domain, host: each.address, port: port.number})
		}
	}
	return found
}

func podTargets(labels []string) ([]target, bool) {
	if len(labels) != 3 {
		return nil, false
	}
	address := strings.ReplaceAll(labels[0], "-", ":")
	if strings.Count(labels[0], "-") == 3 && !strings.Contains(labels[0], "--") {
		address = strings.ReplaceAll(labels[0], "-", ".")
	}
	if net.ParseIP(address) == nil {
		return nil, false
	}
	return []target{{domain: strings.Join(labels, "."), host: address, port: noPort}}, true
}

func matching(ports []port, name, protocol string) []port {
	if len(ports) == 0 {
		ports = []port{{number: noPort}}
	}
	found := []port{}
	for _, each := range ports {
		if (name == "" || each.name == name) && (protocol == "" || strings.EqualFold(each.protocol, protocol)) {
			found = append(found, each)
		}
	}
	return found
}

func hostnameOf(one endpoint) string {
	if one.hostname != "" {
		return one.hostname
	}
	return strings.NewReplacer(".", "-", ":", "-").Replace(one.address)
}

// render makes records of a kind from targets. A name that exists without such a record has an empty answer.
func (r *records) render(name string, kind uint16, zone string, targets []target) reply {
	found, seen := reply{}, map[target]bool{}
	first := func(one target) bool {
		was := seen[one]
		seen[one] = true
		return !was
	}
	for _, each := range targets {
		switch {
		case kind == dns.TypeSRV && each.port != noPort:
			domain := each.domain + "." + zone
			if first(target{domain: domain, port: each.port}) {
				found.answers = append(found.answers, &dns.SRV{
					Hdr: header(name, kind, recordTTL), Port: uint16(each.port), Target: domain, Weight: uint16(100 / len(targets)),
				})
			}
			if extra := addressRecord(domain, each.host); extra != nil && first(target{domain: domain, host: each.host}) {
				found.extras = append(found.extras, extra)
			}
		case kind == dns.TypeSRV || !first(target{host: each.host}): // ports make no difference to addresses
		case net.ParseIP(each.host) == nil:
			found.answers = append(found.answers, r.alias(name, kind, zone, each.host, mostExternals)...)
		default:
			if record := addressRecord(name, each.host); record.Header().Rrtype == kind {
				found.answers = append(found.answers, record)
			}
		}
	}
	rand.Shuffle(len(found.answers), func(a, b int) {
		if found.answers[a].Header().Rrtype == found.answers[b].Header().Rrtype && found.answers[a].Header().Rrtype != dns.TypeCNAME {
			found.answers[a], found.answers[b] = found.answers[b], found.answers[a]
		}
	})
	return found
}

// alias answers for a service of type ExternalName, and goes on where that names a service of this cluster.
func (r *records) alias(name string, kind uint16, zone, external string, most int) []dns.RR {
	external = strings.ToLower(dns.Fqdn(external))
	answers := []dns.RR{&dns.CNAME{Hdr: header(name, dns.TypeCNAME, recordTTL), Target: external}}
	if most == 0 || (kind != dns.TypeA && kind != dns.TypeAAAA) || !dns.IsSubDomain(zone, external) || external == zone {
		return answers
	}
	targets, _ := r.targets(strings.Split(strings.TrimSuffix(external, "."+zone), "."))
	for _, each := range targets {
		if record := addressRecord(external, each.host); record == nil {
			return append(answers, r.alias(external, kind, zone, each.host, most-1)...)
		} else if record.Header().Rrtype == kind {
			answers = append(answers, record)
		}
	}
	return answers
}

// namesOf is the reverse: names of services and of endpoints at an address.
func (r *records) namesOf(address string) []string {
	found := []string{}
	if address == "" {
		return found
	}
	for key, service := range r.services {
		for _, each := range service.addresses {
			if each == address {
				found = append(found, domainOf(key))
			}
		}
	}
	for key, endpoints := range r.endpoints {
		for _, each := range endpoints {
			if each.address == address {
				found = append(found, hostnameOf(each)+"."+domainOf(key))
			}
		}
	}
	return found
}

func domainOf(key string) string {
	namespace, name, _ := strings.Cut(key, "/")
	return name + "." + namespace + "." + serviceSection
}
