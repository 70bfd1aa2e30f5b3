package main

import (
	"net"
	"strings"

	"github.com/miekg/dns"
)

func header(name string, kind uint16, ttl uint32) dns.RR_Header {
	return dns.RR_Header{Name: name, Rrtype: kind, Class: dns.ClassINET, Ttl: ttl}
}

// addressRecord is an A or AAAA record, or nil where the host is no address.
func addressRecord(name, host string) dns.RR {
	address := net.ParseIP(host)
	if address == nil {
		return nil
	}
	if four := address.To4(); four != nil {
		return &dns.A{Hdr: header(name, dns.TypeA, recordTTL), A: four}
	}
	return &dns.AAAA{Hdr: header(name, dns.TypeAAAA, recordTTL), AAAA: address}
}

func apex(kind uint16, zone string) reply {
	switch kind {
	case dns.TypeSOA:
		return reply{answers: []dns.RR{startOfAuthority(zone)}}
	case dns.TypeNS:
		return reply{answers: []dns.RR{&dns.NS{Hdr: header(zone, kind, recordTTL), Ns: "ns.dns." + zone}}}
	}
	return reply{}
}

func startOfAuthority(zone string) dns.RR {
	return &dns.SOA{
		Hdr: header(zone, dns.TypeSOA, recordTTL), Ns: "ns.dns." + zone, Mbox: "hostmaster." + zone,
		Serial: 1, Refresh: 7200, Retry: 1800, Expire: 86400, Minttl: recordTTL,
	}
}

// addressOf reads the address in 4.3.2.1.in-addr.arpa. or in the nibbles of ip6.arpa.; empty for other names.
func addressOf(name string) string {
	labels := strings.Split(strings.TrimSuffix(name, "."), ".")
	for i, j := 0, len(labels)-3; i < j; i, j = i+1, j-1 {
		labels[i], labels[j] = labels[j], labels[i]
	}
	digits := labels[:maximum(len(labels)-2, 0)]
	text := strings.Join(digits, ".")
	if strings.HasSuffix(name, ".ip6.arpa.") {
		text = ""
		for i, nibble := range digits {
			if i > 0 && i%4 == 0 {
				text += ":"
			}
			text += nibble
		}
	} else if !strings.HasSuffix(name, ".in-addr.arpa.") {
		return ""
	}
	if address := net.ParseIP(text); address != nil {
		return address.String()
	}
	return ""
}

func maximum(a, b int) int {
	if a > b {
		return a
	}
	return b
}

// fit drops what does not fit into as many bytes, first what is extra, and says that it did when answers are missing.
func fit(message *dns.Msg, bytes int) {
	if message.Len() > bytes {
		message.Extra = onlyEdns(message.Extra)
	}
	for message.Len() > bytes && len(message.Answer) > 0 {
		message.Truncated = true
		message.Answer = message.Answer[:len(message.Answer)*3/4]
	}
}

func onlyEdns(extras []dns.RR) []dns.RR {
	kept := []dns.RR{}
	for _, each := range extras {
		if each.Header().Rrtype == dns.TypeOPT {
			kept = append(kept, each)
		}
	}
	return kept
}
