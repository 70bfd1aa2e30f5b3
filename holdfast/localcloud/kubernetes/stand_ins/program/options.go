package main

import "strings"

// Options that were given, each with all its values: --name=value, --name value, -name value, or --name alone ("true").
type options map[string][]string

// parseOptions takes any option. What comes after a name and does not start with a dash is its value.
func parseOptions(arguments []string) options {
	found := options{}
	for i := 0; i < len(arguments); i++ {
		if !strings.HasPrefix(arguments[i], "-") {
			continue
		}
		name, value, given := strings.Cut(strings.TrimLeft(arguments[i], "-"), "=")
		if !given {
			value = "true"
			if i+1 < len(arguments) && !strings.HasPrefix(arguments[i+1], "-") {
				i++
				value = arguments[i]
			}
		}
		found[name] = append(found[name], value)
	}
	return found
}

// last is the value that was given last, or the default.
func (o options) last(name string, otherwise string) string {
	if values := o[name]; len(values) > 0 {
		return values[len(values)-1]
	}
	return otherwise
}
