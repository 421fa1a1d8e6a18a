// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"github.com/creelrm/creel/e2e/hadoop"
)

// hadoopRM starts Hadoop's ResourceManager, which has no fence, with one of creel's nodes.
func hadoopRM(f *federation, name string) memberProcess {
	return memberOf(startHadoopRM(f, name, nil))
}

func startHadoopRM(f *federation, name string, conf hadoop.Conf) *hadoop.ResourceManager {
	theirs := hadoop.StartRM(f.t, hadoop.RM{Name: name, Conf: hadoop.Conf{
		"yarn.am.liveness-monitor.expiry-interval-ms": "900000",
	}.With(conf)})
	f.startNode("nm-"+name, theirs.Tracker)
	return theirs
}

func memberOf(theirs *hadoop.ResourceManager) memberProcess {
	return memberProcess{Process: theirs.Process, client: theirs.Client, web: theirs.Web}
}
