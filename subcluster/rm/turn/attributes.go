// SPDX-License-Identifier: Apache-2.0

package turn

import "github.com/creelrm/creel/subcluster/rm"

// hostAttributesValue has, in the journal, the attributes that administrators set on a host.
type hostAttributesValue struct {
	Host       string            `json:"host"`
	Attributes map[string]string `json:"attributes"` // by name
}

func attributesToValue(hosts []rm.HostAttributes) []hostAttributesValue {
	out := make([]hostAttributesValue, len(hosts))
	for i, h := range hosts {
		out[i] = hostAttributesValue{h.Host, map[string]string{}}
		for _, a := range h.Attributes {
			out[i].Attributes[a.Name] = a.Value
		}
	}
	return out
}

func attributesOf(list []hostAttributesValue) []rm.HostAttributes {
	out := make([]rm.HostAttributes, len(list))
	for i, v := range list {
		out[i].Host = v.Host
		for name, value := range v.Attributes {
			out[i].Attributes = append(out[i].Attributes, rm.Attribute{
				AttributeKey: rm.AttributeKey{Prefix: rm.AttributesByCall, Name: name}, Value: value,
			})
		}
	}
	return out
}
