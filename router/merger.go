// SPDX-License-Identifier: Apache-2.0

package router

import (
	"math"
	"slices"
	"strings"
	"time"

	"github.com/creelrm/creel"
)

// Form reads and makes a protocol's values: JSON text, or fields of protobuf messages. A value of an unexpected kind,
// such as a list instead of a number, is never an error: the first member's value applies.
type Form[V any] interface {
	// Object appends the fields of an object to to, in their order. A name may repeat: Hadoop 3.4 writes maps that
	// way in JSON. ok is false for other values.
	Object(v V, to []Named[V]) (fields []Named[V], ok bool)
	// Get returns a field of an object.
	Get(v V, name string) (field V, ok bool)
	// List returns the items of a list.
	List(V) (items []V, ok bool)
	Number(V) (n Number, ok bool)
	// Text identifies a value: equal texts mean equal values.
	Text(V) string

	// MakeObject returns first with its fields replaced. It does not retain fields.
	MakeObject(first V, fields []Named[V]) V
	// MakeList returns the items in the shape of the lists in from.
	MakeList(from []V, items []V) V
	// MakeNumber returns a number in the format of like.
	MakeNumber(like V, n Number) V
	// MakeText returns a text in the format of like.
	MakeText(like V, text string) V
}

// Named is a field's name and value.
type Named[V any] struct {
	Name  string
	Value V
}

// Number is a whole number or a fraction.
type Number struct {
	Int     int64
	Float   float64 // set for whole numbers too
	IsFloat bool    // Int is meaningless
}

// Weighed is one member's value and the member's size, in any unit.
type Weighed[V any] struct {
	Member creel.SubclusterID
	Size   float64
	Value  V
}

// Merger merges the values of several members into one, by the rules in Types. It is stateless; its fields are set
// before use.
type Merger[V any] struct {
	Form Form[V]
	// Unlisted is called for a field without a rule, to which First applies; may be nil.
	Unlisted func(typ, field string)
	// PartitionSize returns a member's size in nodes of a label, in the unit of Weighed.Size. If it returns false
	// (the size is unknown, or there is no label), the member's size applies. May be nil.
	PartitionSize func(member creel.SubclusterID, label string) (float64, bool)
	// Now is the time, for fields with the rule Logs.
	Now time.Time
	// Own has the router's values, for fields with the rule Router.
	Own map[string]V
}

// Merge merges the members' objects into one. parts is not empty, and sorted by member or by precedence. A single
// object is returned unchanged, unless its type has fields with the rule Router.
func (m *Merger[V]) Merge(typ string, parts []Weighed[V]) V {
	w := work[V]{Merger: m}
	return w.merge(typ, parts)
}

// work is one merge with its temporary slices. Each level of a document appends its data to them, and truncates them
// when it is done. A level's data stays valid if a deeper level grows a slice, since growing copies.
type work[V any] struct {
	*Merger[V]
	fields  []Named[V]   // of the objects being merged
	objects []object[V]  // being merged
	values  []Weighed[V] // of the fields being merged
	from    []*object[V] // the objects of values, parallel to it
	out     []Named[V]   // merged so far
}

func (m *work[V]) merge(typ string, parts []Weighed[V]) V {
	rules, listed := TypeOf(typ)
	if !listed {
		return parts[0].Value
	}
	fields, before, made := len(m.fields), len(m.objects), len(m.out)
	for _, p := range parts {
		start := len(m.fields)
		all, ok := m.Form.Object(p.Value, m.fields)
		if !ok {
			continue
		}
		m.fields = all
		m.objects = append(m.objects, object[V]{p, all[start:]})
	}
	objects := m.objects[before:]
	if len(objects) == 0 {
		return parts[0].Value
	}
	objects = m.alike(rules, objects)
	for i := range objects {
		o := &objects[i]
		for at, f := range o.fields {
			// A field of an earlier object is merged already, at its place there.
			if at > 0 && o.fields[at-1].Name == f.Name || i > 0 && seen(objects[:i+1], f.Name, at) {
				continue
			}
			rule, ok := rules.Field(f.Name)
			if !ok {
				rule = &Field{Name: f.Name}
				if m.Unlisted != nil {
					m.Unlisted(typ, f.Name)
				}
			}
			if rule.Rule != Drop {
				m.field(rule, objects, at)
			}
		}
	}
	v := m.Form.MakeObject(objects[0].Value, m.out[made:])
	m.fields, m.objects, m.out = m.fields[:fields], m.objects[:before], m.out[:made]
	return v
}

// seen reports whether an earlier object has the field at index at of the last object, or the last object has it
// before that index.
func seen[V any](objects []object[V], name string, at int) bool {
	last := len(objects) - 1
	for i := range objects[:last] {
		if objects[i].find(name, at) < len(objects[i].fields) {
			return true
		}
	}
	for _, f := range objects[last].fields[:at] {
		if f.Name == name {
			return true
		}
	}
	return false
}

// object is one member's object with its fields.
type object[V any] struct {
	Weighed[V]
	fields []Named[V]
}

// find returns the index of a field at or after index at; the length if there is none.
func (o *object[V]) find(name string, at int) int {
	if at < len(o.fields) && o.fields[at].Name == name {
		return at
	}
	for i := range o.fields {
		if o.fields[i].Name == name {
			return i
		}
	}
	return len(o.fields)
}

func (o *object[V]) get(name string) (v V, ok bool) {
	if i := o.find(name, 0); i < len(o.fields) {
		return o.fields[i].Value, true
	}
	return v, false
}

// alike removes the objects that differ from the first in a field with the rule Same.
func (m *Merger[V]) alike(rules *Type, objects []object[V]) []object[V] {
	for i := range rules.Fields {
		f := &rules.Fields[i]
		if f.Rule != Same {
			continue
		}
		first, ok := objects[0].get(f.Name)
		if !ok {
			continue
		}
		objects = slices.DeleteFunc(objects, func(o object[V]) bool {
			v, ok := o.get(f.Name)
			return ok && m.Form.Text(v) != m.Form.Text(first)
		})
	}
	return objects
}

// field merges one field of the objects that have it, and appends the result to m.out. If a name repeats in the first
// object and First applies, all repeats are appended. Members of the same kind write fields in the same order, so the
// search starts at the field's index in the first object.
func (m *work[V]) field(rule *Field, objects []object[V], at int) {
	before := len(m.values)
	for i := range objects {
		o := &objects[i]
		for j := o.find(rule.Name, at); j < len(o.fields) && o.fields[j].Name == rule.Name; j++ {
			m.values = append(m.values, Weighed[V]{o.Member, o.Size, o.fields[j].Value})
			m.from = append(m.from, o)
		}
	}
	values, from := m.values[before:], m.from[before:]
	if v, one := m.one(rule, values, from); one {
		m.out = append(m.out, Named[V]{rule.Name, v})
	} else {
		for i, v := range values {
			if from[i] == from[0] {
				m.out = append(m.out, Named[V]{rule.Name, v.Value})
			}
		}
	}
	m.values, m.from = m.values[:before], m.from[:before]
}

// one merges the values of a field; false if the first member's values apply.
func (m *work[V]) one(rule *Field, values []Weighed[V], from []*object[V]) (v V, ok bool) {
	switch rule.Rule {
	case Router:
		v, ok = m.Own[rule.Name]
		return v, ok
	case Sum, SumKnown, Max, Min, BySize, ByField:
		return m.number(rule, values, from), true
	case Any:
		return m.having("true", values)
	case All:
		return m.having("false", values)
	case Prefer:
		return m.having(rule.Of, values)
	case Merge:
		return m.merge(rule.Type, values), true
	case Words:
		return m.words(values)
	case Logs:
		return m.logs(rule, values, from), true
	case Union, Join, Newest:
		return m.list(rule, values), true
	}
	return v, false
}

// having returns the first value that equals a text.
func (m *work[V]) having(text string, values []Weighed[V]) (v V, ok bool) {
	for _, v := range values {
		if m.Form.Text(v.Value) == text {
			return v.Value, true
		}
	}
	return v, false
}

// words returns the first value, followed by the differing values of other members, each on its own line with its
// member. It returns false if no value differs.
func (m *work[V]) words(values []Weighed[V]) (v V, ok bool) {
	said := m.Form.Text(values[0].Value)
	for _, v := range values[1:] {
		text := m.Form.Text(v.Value)
		if text == "" || text == m.Form.Text(values[0].Value) {
			continue
		}
		if ok = true; said != "" && !strings.HasSuffix(said, "\n") {
			said += "\n"
		}
		said += "[" + string(v.Member) + "] " + text
	}
	if !ok {
		return v, false
	}
	return m.Form.MakeText(values[0].Value, said), true
}

func (m *work[V]) number(rule *Field, values []Weighed[V], from []*object[V]) V {
	first := values[0].Value
	var few [8]Number // avoids an allocation for most federations
	var fewWeights [8]float64
	numbers := slices.Grow(few[:0], len(values))[:len(values)]
	weights := slices.Grow(fewWeights[:0], len(values))[:len(values)]
	for i, v := range values {
		n, ok := m.Form.Number(v.Value)
		if !ok {
			return first
		}
		numbers[i], weights[i] = n, 1
		if rule.Rule == BySize {
			weights[i] = v.Size
		}
		if rule.Of != "" {
			of, ok := from[i].get(rule.Of)
			n, number := Number{}, false
			if ok {
				n, number = m.Form.Number(of)
			}
			if number {
				weights[i] *= n.Float
			}
		}
	}
	return m.Form.MakeNumber(first, combine(rule.Rule, numbers, weights))
}

// list joins lists. A single item counts as a list of one.
func (m *work[V]) list(rule *Field, values []Weighed[V]) V {
	type item struct {
		same []Weighed[V]
	}
	var items []item
	byKey := map[string]int{}
	shapes := make([]V, len(values))
	for i, v := range values {
		shapes[i] = v.Value
		list, ok := m.Form.List(v.Value)
		if !ok {
			list = []V{v.Value}
		}
		items = slices.Grow(items, max(len(list)-len(items), 0))
		for _, entry := range list {
			one := Weighed[V]{v.Member, v.Size, entry}
			if rule.Key != nil || rule.Rule == Union {
				key := m.key(rule, entry)
				if rule.ByPartition() && m.PartitionSize != nil {
					if size, known := m.PartitionSize(v.Member, key); known {
						one.Size = size
					}
				}
				if at, known := byKey[key]; known {
					items[at].same = append(items[at].same, one)
					continue
				}
				byKey[key] = len(items)
			}
			items = append(items, item{append(make([]Weighed[V], 0, min(len(values)-i, 8)), one)})
		}
	}
	out := make([]V, len(items))
	for i, it := range items {
		out[i] = it.same[0].Value
		switch {
		case len(it.same) == 1:
		case rule.Rule == Newest:
			best := math.Inf(-1)
			for _, s := range it.same {
				if at := m.numberOf(s.Value, rule.Of); at > best {
					best, out[i] = at, s.Value
				}
			}
		case rule.Type != "":
			out[i] = m.merge(rule.Type, it.same)
		}
	}
	return m.Form.MakeList(shapes, out)
}

// key returns the identity of an item; a text is its own key.
func (m *Merger[V]) key(rule *Field, entry V) string {
	if rule.Key == nil {
		return m.Form.Text(entry)
	}
	var b strings.Builder
	found := false
	for i, name := range rule.Key {
		v, ok := m.Form.Get(entry, name)
		found = found || ok
		switch {
		case !ok:
		case len(rule.Key) == 1:
			return m.Form.Text(v)
		default:
			b.WriteString(m.Form.Text(v))
		}
		if i < len(rule.Key)-1 {
			b.WriteByte(0)
		}
	}
	if !found {
		return m.Form.Text(entry) // without a key, items are the same only if they are equal
	}
	return b.String()
}

func (m *Merger[V]) numberOf(entry V, name string) float64 {
	if v, ok := m.Form.Get(entry, name); ok {
		if n, ok := m.Form.Number(v); ok {
			return n.Float
		}
	}
	return 0
}

// combine merges numbers, of which there is at least one.
func combine(rule Rule, numbers []Number, weights []float64) Number {
	if rule == SumKnown {
		known := slices.DeleteFunc(slices.Clone(numbers), func(n Number) bool { return n.Float < 0 })
		if len(known) == 0 {
			return numbers[0]
		}
		numbers = known
	}
	switch rule {
	case Max:
		return slices.MaxFunc(numbers, compareNumbers)
	case Min:
		return slices.MinFunc(numbers, compareNumbers)
	case BySize, ByField:
		values := make([]float64, len(numbers))
		for i, n := range numbers {
			values[i] = n.Float
		}
		mean := Mean(values, weights)
		return Number{Int: int64(math.Round(mean)), Float: mean, IsFloat: numbers[0].IsFloat}
	}
	var sum Number
	for _, n := range numbers {
		if n.unbounded() {
			return n
		}
		sum.Float += n.Float
		sum.IsFloat = sum.IsFloat || n.IsFloat
		if n.Int > 0 && sum.Int > math.MaxInt64-n.Int {
			sum.Int = math.MaxInt64
			continue
		}
		sum.Int += n.Int
	}
	return sum
}

// unbounded reports whether a number means "no limit" in Java.
func (n Number) unbounded() bool {
	return !n.IsFloat && (n.Int == math.MaxInt32 || n.Int == math.MaxInt64)
}

func compareNumbers(a, b Number) int {
	switch {
	case a.Float < b.Float:
		return -1
	case a.Float > b.Float:
		return 1
	}
	return 0
}

// Mean returns the mean of values weighted by weights, which has the same length. With it a queue's capacity, maximum
// or use is computed for the whole federation. Values of weight 0 do not count; if all weights are 0, all count
// equally. Without values it returns 0.
func Mean(values, weights []float64) float64 {
	total, sum, plain := 0.0, 0.0, 0.0
	for i, v := range values {
		total += weights[i]
		sum += v * weights[i]
		plain += v
	}
	switch {
	case total > 0:
		return sum / total
	case len(values) > 0:
		return plain / float64(len(values))
	}
	return 0
}
