// SPDX-License-Identifier: Apache-2.0

package servlets

import "testing"

func TestBeansMatchAsObjectNamesDo(t *testing.T) {
	const queue = "Hadoop:service=ResourceManager,name=QueueMetrics,q0=root,q1=a"
	for pattern, want := range map[string]bool{
		queue: true, "Hadoop:*": true, "Hadoop:service=ResourceManager,name=QueueMetrics,*": true, "*:*": true, "Hadoop:name=QueueMetrics,service=ResourceManager,q1=a,q0=root": true,
		"Hadoop:service=ResourceManager,name=Queue*,q0=root,q1=?": true, "Hadoop:service=ResourceManager,name=QueueMetrics": false,
		"hadoop:*": false, "Hadoop:service=NodeManager,*": false, "Hadoop:service=ResourceManager,name=QueueMetrics,q0=root,q1=b": false,
	} {
		if got := matches(pattern, queue); got != want {
			t.Errorf("%s matches: %v", pattern, got)
		}
	}
}
