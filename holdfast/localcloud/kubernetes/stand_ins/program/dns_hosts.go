package main

import (
	"net"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/miekg/dns"
)

// A hostsFile answers from a file like /etc/hosts, as CoreDNS's plugin "hosts" does. It is read again when it changed.
type hostsFile struct {
	path string

	lock    sync.Mutex
	changed time.Time
	names   map[string][]string
}

// resolve answers in the name's own letters. A name that the file has without such a record has an empty answer.
func (h *hostsFile) resolve(asked, name string, kind uint16) ([]dns.RR, int) {
	if h == nil {
		return nil, dns.RcodeNameError
	}
	addresses := h.read()[strings.TrimSuffix(name, ".")]
	if len(addresses) == 0 {
		return nil, dns.RcodeNameError
	}
	answers := []dns.RR{}
	for _, address := range addresses {
		if record := addressRecord(asked, address); record.Header().Rrtype == kind {
			answers = append(answers, record)
		}
	}
	return answers, dns.RcodeSuccess
}

func (h *hostsFile) read() map[string][]string {
	h.lock.Lock()
	defer h.lock.Unlock()
	found, err := os.Stat(h.path)
	if err != nil || (h.names != nil && found.ModTime().Equal(h.changed)) {
		return h.names
	}
	if content, err := os.ReadFile(h.path); err == nil {
		h.changed, h.names = found.ModTime(), parseHosts(string(content))
	}
	return h.names
}

func parseHosts(content string) map[string][]string {
	names := map[string][]string{}
	for _, line := range strings.Split(content, "\n") {
		plain, _, _ := strings.Cut(line, "#")
		fields := strings.Fields(plain)
		if len(fields) < 2 || net.ParseIP(fields[0]) == nil {
			continue
		}
		for _, name := range fields[1:] {
			name = strings.ToLower(name)
			names[name] = append(names[name], fields[0])
		}
	}
	return names
}
