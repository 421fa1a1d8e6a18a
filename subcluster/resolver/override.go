// SPDX-License-Identifier: Apache-2.0

package resolver

import (
	"fmt"
	"strings"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster"
)

// Override is a line of a machine list: the host belongs to the member, whatever members publish.
type Override struct {
	Host, Rack string // Rack may be empty: the host has no rack
	Member     creel.SubclusterID
}

// ParseMachineList parses Hadoop's machine list (yarn.federation.machine-list): a line of "host, subcluster, rack"
// for each node. The last line of a host counts; empty lines and lines that start with # are skipped. The error, an
// *creel.Error of kind creel.ErrInvalidRequest, names the line.
func ParseMachineList(text string) ([]Override, error) {
	var out []Override
	place := map[string]int{} // index in out, by host
	number := 0
	for line := range strings.Lines(text) {
		number++
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		fields := strings.Split(line, ",")
		for i := range fields {
			fields[i] = strings.TrimSpace(fields[i])
		}
		bad := func(why string) ([]Override, error) {
			return nil, &creel.Error{
				Kind: creel.ErrInvalidRequest,
				What: fmt.Sprintf("machine list, line %d: %.80q", number, line),
				Why:  why,
				Try:  "write: host, subcluster, rack",
			}
		}
		if len(fields) != 3 {
			return bad(fmt.Sprintf("it has %d fields, not 3", len(fields)))
		}
		o := Override{Host: fields[0], Member: creel.SubclusterID(fields[1]), Rack: fields[2]}
		if !goodName(o.Host) {
			return bad("its host is not a valid name")
		}
		if err := subcluster.ValidID(o.Member); err != nil {
			return bad(err.Error())
		}
		if o.Rack != "" && !goodName(o.Rack) {
			return bad("its rack is not a valid name")
		}
		if i, listed := place[fold(o.Host)]; listed {
			out[i] = o
			continue
		}
		if len(out) == MaxHosts {
			return bad(fmt.Sprintf("there are more than %d hosts", MaxHosts))
		}
		place[fold(o.Host)] = len(out)
		out = append(out, o)
	}
	return out, nil
}
