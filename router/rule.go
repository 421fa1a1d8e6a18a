// SPDX-License-Identifier: Apache-2.0

package router

import (
	"fmt"
	"slices"
	"strings"
)

// The merging of several members' answers is specified field by field. Types has a rule for each field of each
// document and message, and both protocols merge by it (see Merger). Special cases have special rules: no rule is
// derived from a field's name. docs/reference/merging.md is generated from these tables.

// partsNote is the note of lists of applications.
const partsNote = "the home's entry comes first, its UAMs' are merged into it, and UAMs alone are no entry; limit holds for the " +
	"joined list, newest first. Creel's ResourceManagers return UAMs that run, or whose logs are not aggregated yet, whatever the filter; Hadoop's return those that pass it"

// logsNote is the note of log aggregation statuses.
const logsNote = "as one ResourceManager with the nodes of all would report; DISABLED does not count next to others, nor NOT_START of a UAM " +
	"that used nothing, or has been over for 10 minutes: no node has logs of it"

// Rule is the way in which the values of a field are merged.
type Rule int

// The rules. A member that lacks the field does not count.
const (
	First    Rule = iota // the value of the first member by id: a setting, or a text that cannot be joined
	Sum                  // the sum; "no limit" (the largest number of 32 or 64 bits) stays "no limit"
	SumKnown             // the sum; a negative number means "unknown" and does not count
	Max                  // the greatest
	Min                  // the smallest
	BySize               // the mean, weighted by the members' sizes (and by the field Of, if it is set)
	ByField              // the mean, weighted by the field Of of the same object
	Any                  // true if it is true of one member
	All                  // true if it is true of all members
	Prefer               // the text Of if one member has it, else the first member's
	Words                // a text: the first member's, then the others' on lines with their names
	Union                // a list of texts: each once
	Merge                // an object: merged field by field, by the rules of Type
	Join                 // a list of objects: objects with the same Key are merged by Type, or the first stays
	Newest               // a list of objects: of objects with the same Key, the one with the greatest Of
	Same                 // members that differ from the first in this field are left out of the object
	Logs                 // log aggregation status: see JoinLogs
	Router               // the router's value
	Drop                 // left out
)

var ruleTexts = [...]string{
	First:    "first member's",
	Sum:      "sum",
	SumKnown: "sum of the known values",
	Max:      "max",
	Min:      "min",
	BySize:   "mean by member size",
	ByField:  "mean",
	Any:      "any",
	All:      "all",
	Prefer:   "prefer",
	Words:    "first member's, then the others'",
	Union:    "union",
	Merge:    "merged",
	Join:     "joined",
	Newest:   "newest",
	Same:     "must be the first member's",
	Logs:     "of all members' nodes",
	Router:   "router's own",
	Drop:     "left out",
}

func (r Rule) String() string { return ruleTexts[r] }

// Field is one field of a Type and its rule.
type Field struct {
	Name string // as the protocol writes it
	Rule Rule
	Type string   // for Merge and Join: the Type of the items; Join without a Type keeps the first of equal items
	Key  []string // for Join and Newest: the fields that identify an item; none: all items differ
	// Of is a sibling field for BySize, ByField and Newest, and the text for Prefer. For Logs it is the field with
	// the application's resource use, and Ended is the field with the time of its end.
	Of, Ended string
	Note      string // the reason, if it is not obvious
}

// String returns the rule as text.
func (f *Field) String() string {
	text := f.Rule.String()
	switch {
	case f.Rule == Merge:
		text += " as " + f.Type
	case f.Rule == Join || f.Rule == Newest:
		if f.Key != nil {
			text += " by " + strings.Join(f.Key, ", ")
		}
		if f.Type != "" {
			text += ", equal ones merged as " + f.Type
		}
		if f.ByPartition() {
			text += ", a member as large as its nodes of the label"
		}
		if f.Of != "" {
			text += ", the one of the greatest " + f.Of
		}
	case f.Rule == Prefer:
		text += " " + f.Of
	case f.Of != "" && f.Rule != Logs:
		text += ", weighted by " + f.Of
	}
	return text
}

// ByPartition reports whether items are identified by their partition. A share of a partition does not apply to
// members without nodes in it.
func (f *Field) ByPartition() bool { return slices.Equal(f.Key, []string{"partitionName"}) }

// Type is an object of a document or a message.
type Type struct {
	Name   string // Hadoop's name of the class or message
	Fields []Field
}

// Field finds a field's rule.
func (t *Type) Field(name string) (*Field, bool) {
	f, ok := t.byName()[name]
	return f, ok
}

// Document is one endpoint or method, and its route.
type Document struct {
	Protocol string // "REST", "RPC", "RPC admin"
	Name     string // path with its method, or method
	Route    Route
	Type     string // for Merged: the type by which answers are merged
	Note     string
}

// Route is the set of members that a call goes to, and the source of the answer.
type Route int

// The routes.
const (
	Merged        Route = iota // to all; the answers are merged by Type
	AtHome                     // to the home of its application
	AtHomeAll                  // to the home and then to the other members; the answer is the home's
	AtOwner                    // to the member that has the node or container
	ByName                     // to the member that the call names
	AtAny                      // to one active member, at random
	Everywhere                 // to all; the answer names the members that accepted it
	Chosen                     // to the home that the policy chooses
	AtReservation              // to the member that has the reservation
	ByRouter                   // answered by the router itself
)

var routeTexts = [...]string{
	Merged:        "all members, merged",
	AtHome:        "home",
	AtHomeAll:     "home, then all others",
	AtOwner:       "the member that has it",
	ByName:        "the subcluster it names",
	AtAny:         "any active member",
	Everywhere:    "all members, each reported",
	Chosen:        "the home that the policy chooses",
	AtReservation: "home of the reservation",
	ByRouter:      "the router itself",
}

func (r Route) String() string { return routeTexts[r] }

var (
	typeTable  = map[string]*Type{}
	fieldTable = map[*Type]map[string]*Field{}
)

func (t *Type) byName() map[string]*Field { return fieldTable[t] }

// TypeOf finds a type's rules by name.
func TypeOf(name string) (*Type, bool) {
	t, ok := typeTable[name]
	return t, ok
}

// init indexes the tables; a duplicate name or a dangling reference is a bug.
func init() {
	for i := range Types {
		t := &Types[i]
		if typeTable[t.Name] != nil {
			panic("merge rules: two types " + t.Name)
		}
		typeTable[t.Name] = t
		fields := make(map[string]*Field, len(t.Fields))
		for j := range t.Fields {
			if fields[t.Fields[j].Name] != nil {
				panic(fmt.Sprintf("merge rules: two fields %s.%s", t.Name, t.Fields[j].Name))
			}
			fields[t.Fields[j].Name] = &t.Fields[j]
		}
		fieldTable[t] = fields
	}
}

// fields returns fields with the same rule.
func fields(r Rule, names ...string) []Field {
	out := make([]Field, len(names))
	for i, name := range names {
		out[i] = Field{Name: name, Rule: r}
	}
	return out
}

// merged returns fields whose values are objects of one type.
func merged(typ string, names ...string) []Field {
	out := fields(Merge, names...)
	for i := range out {
		out[i].Type = typ
	}
	return out
}

func noted(note string, list []Field) []Field {
	for i := range list {
		list[i].Note = note
	}
	return list
}

func weighted(r Rule, of string, names ...string) []Field {
	out := fields(r, names...)
	for i := range out {
		out[i].Of = of
	}
	return out
}

func joined(name, typ string, key ...string) Field {
	return Field{Name: name, Rule: Join, Type: typ, Key: key}
}
