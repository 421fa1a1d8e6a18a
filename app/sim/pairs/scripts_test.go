// SPDX-License-Identifier: Apache-2.0

package pairs

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

func number(text string) int64 {
	n, _ := strconv.ParseInt(text, 10, 64) // 0 for an absent one
	return n
}

func text(n int64) string { return strconv.FormatInt(n, 10) }

// write is the next version of some data.
func (d *data) write() *data {
	next := *d
	next.meta = maps.Clone(d.meta)
	return &next
}

// script runs one of package redisstate's scripts that write.
func (s *server) script(i *instance, name string, args []string) []any {
	d := i.data.write()
	us := s.w.now.Add(i.clock).UnixMicro()
	d.meta["written"] = text(us)
	var out []any
	switch name {
	case "rm state open":
		out = s.open(d, us, args)
	case "rm state confirm", "rm state count":
		if out = held(d, args[0]); out != nil {
			break
		}
		if number(d.meta["number"]) < number(args[1]) {
			out = []any{"LOST", d.meta["number"]}
		} else if out = []any{"OK"}; name == "rm state count" {
			out = append(out, int64(len(d.entries)))
		}
	case "rm state write":
		if out = held(d, args[0]); out == nil {
			out = group(d, args)
		}
	case "rm lease":
		out = d.lease(us, args)
	case "rm lease release":
		if out = []any{"OTHER"}; d.meta["lease_by"] == args[0] {
			d.meta["lease_until"], out = "0", []any{"OK"}
		}
	default:
		panic("there is no model of " + name)
	}
	s.store(i, d)
	return out
}

func (s *server) open(d *data, us int64, args []string) []any {
	if d.meta["layout"] == "" {
		d.meta["layout"] = args[0]
	}
	previous := d.meta["epoch"]
	last := text(number(d.meta["number"]))
	epoch := text(max(us, number(previous)+1))
	d.meta["epoch"], d.meta["holder"], d.meta["number"] = epoch, args[1], last
	ends := d.meta["ends"] + " " + text(number(previous)) + ":" + last
	d.meta["ends"] = ends[max(0, len(ends)-1000):]
	s.opens++
	return []any{"OK", epoch, last, previous}
}

// held answers a caller that is not the holder, nil if it is.
func held(d *data, epoch string) []any {
	if d.meta["epoch"] == epoch {
		return nil
	}
	at := ""
	if ends := d.meta["ends"]; ends != "" {
		_, at, _ = strings.Cut(ends, " "+epoch+":")
		at, _, _ = strings.Cut(at, " ")
		at = text(number(at))
	}
	return []any{"HELD", text(number(d.meta["epoch"])), d.meta["holder"], at}
}

func group(d *data, args []string) []any {
	n, last := number(args[1]), number(d.meta["number"])
	if last == n {
		return []any{"OK"}
	}
	if last != n-1 {
		return []any{"LOST", text(last)}
	}
	d.entries = maps.Clone(d.entries)
	sets := 4 + int(number(args[2]))
	var names []string
	for k := 4; k < sets; k += 2 {
		d.entries[args[k]] = args[k+1]
		names = append(names, args[k])
	}
	for _, name := range args[sets:] {
		delete(d.entries, name)
		names = append(names, name)
	}
	d.meta["number"] = args[1]
	d.tail = &link{before: d.tail, epoch: args[0], number: n, names: names}
	d.trimmed = max(d.trimmed, n-number(args[3]))
	return []any{"OK"}
}

// changes is the script that a standby reads with.
func changes(d *data, args []string) []any {
	n, last := number(args[1]), number(d.meta["number"])
	other := []any{"OTHER", d.meta["epoch"], text(last)}
	if d.meta["epoch"] != args[0] || last < n || n < last && n < d.trimmed {
		return other
	}
	var groups []*link
	for l := d.tail; l != nil && l.number > n; l = l.before {
		groups = append(groups, l)
	}
	slices.Reverse(groups)
	if most := int(number(args[2])); len(groups) > most {
		groups = groups[:most]
	}
	seen := map[string]bool{}
	var names []string
	for _, g := range groups {
		if n++; g.number != n {
			return other
		}
		for _, name := range g.names {
			if !seen[name] {
				seen[name] = true
				names = append(names, name)
			}
		}
	}
	out := []any{"OK", text(n), text(last), int64(len(d.entries))}
	for _, name := range names {
		if value, ok := d.entries[name]; ok {
			out = append(out, name, value)
		} else {
			out = append(out, name, nil)
		}
	}
	return out
}

func (d *data) lease(us int64, args []string) []any {
	left, term := number(d.meta["lease_until"])-us, number(d.meta["lease_term"])
	if left > term {
		left = term
		d.meta["lease_until"] = text(us + term)
	}
	if left > 0 && d.meta["lease_by"] != args[1] {
		return []any{"HELD", d.meta["lease"], text(left)}
	}
	if args[2] == "0" {
		return []any{"FREE"}
	}
	d.meta["lease"], d.meta["lease_by"], d.meta["lease_term"] = args[0], args[1], args[2]
	d.meta["lease_until"] = text(us + number(args[2]))
	return []any{"OK"}
}
