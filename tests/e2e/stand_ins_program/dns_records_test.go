package main

import (
	"fmt"
	"sort"
	"strings"
	"testing"

	"github.com/miekg/dns"
)

const testZone = "cluster.local."

func someRecords() *records {
	named := []port{{name: "rdzv", protocol: "TCP", number: 29500}, {name: "log", protocol: "UDP", number: 514}}
	return &records{
		namespaces: map[string]bool{"default": true, "empty": true},
		services: map[string]service{
			"default/web":    {addresses: []string{"172.20.0.7", "fd00::7"}, ports: []port{{name: "https", protocol: "TCP", number: 443}}},
			"default/job":    {ports: named},
			"default/bare":   {},
			"default/none":   {ports: named},
			"default/out":    {external: "www.example.com"},
			"default/inside": {external: "web.default.svc.cluster.local"},
			"default/loop":   {external: "loop.default.svc.cluster.local"},
		},
		endpoints: map[string][]endpoint{
			"default/web":  {{address: "100.64.0.9", ports: []port{{name: "https", protocol: "TCP", number: 8443}}}},
			"default/job":  {{address: "100.64.0.2", hostname: "job-0", ports: named}, {address: "100.64.0.3", ports: named}},
			"default/bare": {{address: "100.64.0.4", hostname: "bare-0"}},
		},
	}
}

// told is the answer in one line, sorted: an answer's order is by chance.
func told(name string, kind uint16) string {
	found, own := someRecords().resolve(name, kind, testZone)
	if !own {
		return "another domain"
	}
	lines := []string{}
	for _, each := range append(found.answers, found.extras...) {
		header := each.Header()
		lines = append(lines, fmt.Sprintf("%s %s", dns.TypeToString[header.Rrtype], strings.TrimPrefix(each.String(), header.String())))
	}
	sort.Strings(lines)
	if len(lines) == 0 {
		return dns.RcodeToString[found.code]
	}
	return strings.Join(lines, ", ")
}

func TestNamesAreAnsweredAsTheSpecificationSays(t *testing.T) {
	for question, want := range map[string]string{
		"web.default.svc.cluster.local. A":               "A 172.20.0.7",
		"web.default.svc.cluster.local. AAAA":            "AAAA fd00::7",
		"web.default.svc.cluster.local. MX":              "NOERROR",
		"_https._tcp.web.default.svc.cluster.local. SRV": "A 172.20.0.7, AAAA fd00::7, SRV 0 50 443 web.default.svc.cluster.local.",
		"_https._udp.web.default.svc.cluster.local. SRV": "NXDOMAIN",
		"100-64-0-9.web.default.svc.cluster.local. A":    "A 100.64.0.9",
		"job.default.svc.cluster.local. A":               "A 100.64.0.2, A 100.64.0.3",
		"job.default.svc.cluster.local. AAAA":            "NOERROR",
		"job-0.job.default.svc.cluster.local. A":         "A 100.64.0.2",
		"100-64-0-3.job.default.svc.cluster.local. A":    "A 100.64.0.3",
		"job-1.job.default.svc.cluster.local. A":         "NXDOMAIN",
		"_rdzv._tcp.job.default.svc.cluster.local. SRV": "A 100.64.0.2, A 100.64.0.3, " +
			"SRV 0 50 29500 100-64-0-3.job.default.svc.cluster.local., SRV 0 50 29500 job-0.job.default.svc.cluster.local.",
		"bare.default.svc.cluster.local. A":      "A 100.64.0.4",
		"bare.default.svc.cluster.local. SRV":    "NOERROR",
		"none.default.svc.cluster.local. A":      "NXDOMAIN",
		"nosuch.default.svc.cluster.local. A":    "NXDOMAIN",
		"out.default.svc.cluster.local. A":       "CNAME www.example.com.",
		"x.out.default.svc.cluster.local. A":     "NXDOMAIN",
		"inside.default.svc.cluster.local. A":    "A 172.20.0.7, CNAME web.default.svc.cluster.local.",
		"10-1-2-3.default.pod.cluster.local. A":  "A 10.1.2.3",
		"nonsense.default.pod.cluster.local. A":  "NXDOMAIN",
		"10-1-2-3.nosuch.pod.cluster.local. A":   "NXDOMAIN",
		"empty.svc.cluster.local. A":             "NOERROR",
		"nosuch.svc.cluster.local. A":            "NXDOMAIN",
		"svc.cluster.local. A":                   "NOERROR",
		"other.cluster.local. A":                 "NXDOMAIN",
		"cluster.local. A":                       "NOERROR",
		"cluster.local. NS":                      "NS ns.dns.cluster.local.",
		"dns-version.cluster.local. TXT":         `TXT "1.1.0"`,
		"a.b.c.job.default.svc.cluster.local. A": "NXDOMAIN",
		"7.0.20.172.in-addr.arpa. PTR":           "PTR web.default.svc.cluster.local.",
		"2.0.64.100.in-addr.arpa. PTR":           "PTR job-0.job.default.svc.cluster.local.",
		"7.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.d.f.ip6.arpa. PTR": "PTR web.default.svc.cluster.local.",
		"9.9.9.9.in-addr.arpa. PTR": "another domain",
		"notcluster.local. A":       "another domain",
		"example.com. A":            "another domain",
	} {
		name, kind, _ := strings.Cut(question, " ")
		if got := told(name, dns.StringToType[kind]); got != want {
			t.Errorf("%s: got %q, want %q", question, got, want)
		}
	}
}

func TestServicesThatNameEachOtherInACircleEnd(t *testing.T) {
	if got := told("loop.default.svc.cluster.local.", dns.TypeA); !strings.HasPrefix(got, "CNAME loop.") {
		t.Fatalf("got %q", got)
	}
}

func TestAnAnswerThatDoesNotFitSaysSo(t *testing.T) {
	message := new(dns.Msg)
	message.SetQuestion("job.default.svc.cluster.local.", dns.TypeA)
	for i := 0; i < 200; i++ {
		message.Answer = append(message.Answer, addressRecord("job.default.svc.cluster.local.", fmt.Sprintf("10.0.0.%d", i)))
	}
	message.Compress = true
	if fit(message, 4096); message.Truncated || len(message.Answer) != 200 {
		t.Fatalf("%d answers, truncated: %v", len(message.Answer), message.Truncated)
	}
	if fit(message, 512); !message.Truncated || message.Len() > 512 || len(message.Answer) == 0 {
		t.Fatalf("%d answers in %d bytes, truncated: %v", len(message.Answer), message.Len(), message.Truncated)
	}
}

func TestAFileOfHostsIsReadLineByLine(t *testing.T) {
	got := parseHosts("127.0.0.1 localhost # me\n10.1.0.5\tip-10-1-0-5 IP-10-1-0-5.example # x\nnonsense a\n\n10.1.0.6\n")
	if len(got) != 3 || got["ip-10-1-0-5.example"][0] != "10.1.0.5" {
		t.Fatalf("got %v", got)
	}
}
