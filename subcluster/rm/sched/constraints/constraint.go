// SPDX-License-Identifier: Apache-2.0

package constraints

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/creelrm/creel"
)

// Constraint restricts the nodes for the containers of an ask, as a tree. Each grant checks it against the containers
// on a node at that moment; a running container is never moved. The rules are those of Hadoop 3.4's
// PlacementConstraintsUtil, including its surprises.
type Constraint struct {
	Op    ConstraintOp
	Parts []*Constraint // of AllOf and AnyOf

	// Fields of a clause. Each target is checked separately, and all must hold.
	Rack     bool // counts containers of the node's rack instead of the node
	Targets  []Target
	Min, Max int32  // number of containers with the tags, inclusive; math.MaxInt32 for no limit
	NotEqual bool   // attributes must not have the value
	Wrong    string // why no node satisfies it: Hadoop's scheduler does not support it either
}

// ConstraintOp is the operator of a constraint.
type ConstraintOp uint8

// Kinds of constraint.
const (
	Clause ConstraintOp = iota
	AllOf
	AnyOf
)

// TargetKind is the kind of a clause's target.
type TargetKind uint8

// Kinds of target.
const (
	ByTag       TargetKind = iota // containers with allocation tags
	ByAttribute                   // an attribute of the node's host
	ByPartition                   // the node's label
	ByNothing                     // SELF: Hadoop's scheduler ignores it
)

// Target is the target of a clause.
type Target struct {
	Kind      TargetKind
	Namespace Namespace           // of tags: the applications whose containers count
	App       creel.ApplicationID // for OfApp
	AppTag    string              // for OfTagged
	Key       string              // attribute as PREFIX/NAME
	Values    []string            // tags; or values of attributes and labels, of which only the first counts
}

// Namespace selects the applications whose containers a tag refers to.
type Namespace uint8

// Namespaces of allocation tags.
const (
	OfSelf    Namespace = iota // the asking application
	OfOthers                   // all other applications
	OfAll                      // all applications
	OfApp                      // one application by its id
	OfTagged                   // applications with an application tag
	numSpaces = iota
)

var spaces = [numSpaces]string{"self", "not-self", "all", "app-id", "app-tag"}

// ParseNamespace parses a namespace in a request, "" for self, into a target.
func ParseNamespace(text string, t *Target) error {
	name, of, _ := strings.Cut(strings.TrimSpace(text), "/")
	if name == "" {
		name = spaces[OfSelf]
	}
	i := slices.Index(spaces[:], name)
	if i < 0 {
		return invalid("Invalid namespace prefix: "+name, "it is none of "+strings.Join(spaces[:], ", "),
			"name one of them")
	}
	t.Namespace = Namespace(i)
	switch t.Namespace {
	case OfApp:
		id, err := creel.ParseApplicationID(of)
		if err != nil {
			return err
		}
		t.App = id
	case OfTagged:
		if t.AppTag = of; of == "" {
			return invalid("Invalid namespace: "+text, "it names no application tag", "write app-tag/TAG")
		}
	}
	return nil
}

// Both returns a constraint that requires all of the given ones, nil for none.
func Both(list ...*Constraint) *Constraint {
	list = slices.DeleteFunc(slices.Clone(list), func(c *Constraint) bool { return c == nil })
	switch len(list) {
	case 0:
		return nil
	case 1:
		return list[0]
	}
	return &Constraint{Op: AllOf, Parts: list}
}

// String returns the constraint in the notation of Hadoop's placement specifications.
func (c *Constraint) String() string {
	if c.Wrong != "" {
		return c.Wrong
	}
	if c.Op != Clause {
		parts := make([]string, len(c.Parts))
		for i, p := range c.Parts {
			parts[i] = p.String()
		}
		return map[ConstraintOp]string{AllOf: "and(", AnyOf: "or("}[c.Op] + strings.Join(parts, ":") + ")"
	}
	scope := "node"
	if c.Rack {
		scope = "rack"
	}
	parts := make([]string, len(c.Targets))
	for i := range c.Targets {
		t := &c.Targets[i]
		what := strings.Join(t.Values, ",")
		if t.Kind != ByTag {
			op := "="
			if c.NotEqual {
				op = "!="
			}
			parts[i] = t.Key + op + what
			continue
		}
		if t.Namespace != OfSelf {
			of := spaces[t.Namespace]
			switch t.Namespace {
			case OfApp:
				of += "/" + t.App.String()
			case OfTagged:
				of += "/" + t.AppTag
			}
			what = of + "/" + what
		}
		switch {
		case c.Min == 0 && c.Max == 0:
			parts[i] = "notin," + scope + "," + what
		case c.Min == 1 && c.Max == math.MaxInt32:
			parts[i] = "in," + scope + "," + what
		case c.Max == math.MaxInt32:
			parts[i] = fmt.Sprintf("cardinality,%s,%s,%d,", scope, what, c.Min)
		default:
			parts[i] = fmt.Sprintf("cardinality,%s,%s,%d,%d", scope, what, c.Min, c.Max)
		}
	}
	return strings.Join(parts, ":")
}

// Senseless reports whether c can never hold, because no scheduler supports a feature that it uses.
func (c *Constraint) Senseless() bool {
	senseless := (*Constraint).Senseless
	switch {
	case c == nil:
		return false
	case c.Op == AllOf:
		return slices.ContainsFunc(c.Parts, senseless)
	case c.Op == AnyOf:
		return !slices.ContainsFunc(c.Parts, func(p *Constraint) bool { return !p.Senseless() })
	}
	return c.Wrong != ""
}

func invalid(what, why, try string) error {
	return &creel.Error{Kind: creel.ErrInvalidRequest, What: what, Why: why, Try: try}
}
