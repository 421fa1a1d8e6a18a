// SPDX-License-Identifier: Apache-2.0

package turn

import (
	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster/rm"
)

// labelsValue has, in the journal, the labels of the cluster and of nodes.
type labelsValue struct {
	Cluster []labelValue     `json:"cluster,omitempty"`
	Nodes   []nodeLabelValue `json:"nodes,omitempty"`
}

type labelValue struct {
	Name      string `json:"name"`
	Exclusive bool   `json:"exclusive"`
}

type nodeLabelValue struct {
	Host  string `json:"host"`
	Port  int32  `json:"port,omitempty"`
	Label string `json:"label,omitempty"`
}

func labelsToValue(l *rm.Labels) labelsValue {
	var v labelsValue
	for _, c := range l.Cluster {
		v.Cluster = append(v.Cluster, labelValue(c))
	}
	for _, n := range l.Nodes {
		v.Nodes = append(v.Nodes, nodeLabelValue{n.Node.Host, n.Node.Port, n.Label})
	}
	return v
}

func (v labelsValue) labels() rm.Labels {
	var l rm.Labels
	for _, c := range v.Cluster {
		l.Cluster = append(l.Cluster, rm.Label(c))
	}
	for _, n := range v.Nodes {
		l.Nodes = append(l.Nodes, rm.NodeLabel{Node: creel.NodeID{Host: n.Host, Port: n.Port}, Label: n.Label})
	}
	return l
}
