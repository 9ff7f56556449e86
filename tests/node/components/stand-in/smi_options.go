package main

import (
	"fmt"
	"slices"
	"strings"
)

// The options of nvidia-smi, their messages and exit codes are those of driver 580.159.04 with an H100, which
// tests/unit/fleet_agent/machine/nvidia_smi.yml records. What is not simulated is an error.
const (
	queryGPUs, queryApps = "--query-gpu", "--query-compute-apps"
	invalid, unknown     = 2, 255
	help                 = "Please run 'nvidia-smi -h'"
)

// Fields of each query, by all of their names, and the name in the header.
var fieldsOf = map[string]map[string]string{
	queryGPUs: {
		"index": "index", "uuid": "uuid", "gpu_uuid": "uuid", "name": "name", "gpu_name": "name", "pci.bus_id": "pci.bus_id",
		"driver_version": "driver_version", "count": "count", "memory.total": "memory.total", "ecc.mode.current": "ecc.mode.current",
		"mig.mode.current": "mig.mode.current", "ecc.errors.uncorrected.volatile.total": "ecc.errors.uncorrected.volatile.total",
	},
	queryApps: {"gpu_name": "gpu_name", "gpu_uuid": "gpu_uuid", "pid": "pid", "name": "process_name", "process_name": "process_name"},
}

// request is what was asked for. query is empty for the overview and the list.
type request struct {
	query         string
	fields        []string
	listing       bool
	header, units bool
	id            string
}

// refusal has the message and the exit code of invalid arguments.
type refusal struct {
	message string
	code    int
}

func refused(code int, format string, values ...any) *refusal {
	return &refusal{fmt.Sprintf(format, values...), code}
}

func parsed(words []string) (request, *refusal) {
	asked := request{header: true, units: true}
	for _, word := range words {
		switch option, _, _ := strings.Cut(word, "="); option {
		case queryGPUs, queryApps:
			if asked.query != "" {
				return asked, refused(invalid, "Only one --query-* switch can be used at a time.\n")
			}
			asked.query = option
		case "-L", "--list-gpus":
			asked.listing = true
		}
	}
	for rest := words; len(rest) > 0; {
		word := rest[0]
		option, value, given := strings.Cut(word, "=")
		rest = rest[1:]
		switch {
		case option == "-L" || option == "--list-gpus":
			continue
		case asked.listing:
			return asked, refused(invalid, "ERROR: Option %s is not valid for this command. %s for help.\n\n", word, help)
		case !slices.Contains([]string{"-i", "--id"}, option) && (asked.query == "" || !slices.Contains([]string{asked.query, "--format"}, option)):
			return asked, unrecognized(word, asked.query != "")
		}
		if !given && len(rest) > 0 {
			value, rest = rest[0], rest[1:]
		}
		switch option {
		case "--format":
			for _, modifier := range strings.Split(value, ",") {
				if !slices.Contains([]string{"csv", "noheader", "nounits"}, modifier) {
					return asked, refused(invalid, "Format modifier is not recognized.\n")
				}
				asked.header = asked.header && modifier != "noheader"
				asked.units = asked.units && modifier != "nounits"
			}
		case "-i", "--id":
			asked.id = value
		default:
			asked.fields = strings.Split(value, ",")
		}
	}
	for _, field := range asked.fields {
		if field != "" && fieldsOf[asked.query][field] == "" {
			return asked, refused(invalid, "Field \"%s\" is not a valid field to query.\n\n", field)
		}
	}
	return asked, nil
}

func unrecognized(word string, queried bool) *refusal {
	if queried {
		return refused(invalid, "ERROR: Option %s is not recognized. %s for help.\n\n", word, help)
	}
	return refused(unknown, "ERROR: Option %s is not recognized. %s.\n\n", word, help)
}

// heading is the first line of a table.
func (asked request) heading() string {
	names := make([]string, len(asked.fields))
	for place, field := range asked.fields {
		names[place] = fieldsOf[asked.query][field]
		if names[place] == "memory.total" {
			names[place] += " [MiB]"
		}
	}
	return strings.Join(names, ", ")
}

func (asked request) row(facts map[string]string) string {
	values := make([]string, len(asked.fields))
	for place, field := range asked.fields {
		values[place] = facts[fieldsOf[asked.query][field]]
	}
	return strings.Join(values, ", ")
}
