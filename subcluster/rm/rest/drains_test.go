// SPDX-License-Identifier: Apache-2.0

package rest_test

import (
	"strings"
	"testing"
)

// A host's document has the containers that a drain would end. The drain leaves these, and a node without any leaves.
func TestHostIsDrainedAndTakenInAgain(t *testing.T) {
	c := start(t, nil)
	id := c.submit("alice", "a", "")
	c.register("")
	host, _, _ := strings.Cut(c.nodeOf(id), ":")
	path, as := "/api/v1/drains/"+host, "?user.name=root"
	c.try("GET", path+as, "", 200, `"containers":1,"ams":1,"applications":[{"id":"`+id+`","containers":1,"am":true}]`)
	c.try("GET", "/api/v1/drains"+as, "", 200, `{"hosts":[]}`)
	c.try("PUT", path+"?user.name=eve", `{}`, 403, "eve")
	c.try("PUT", path+as, `{"atonce":true}`, 400, "atonce")
	c.try("PUT", path+as, `{"timeout_s":1e300}`, 400, "720h0m0s")
	c.try("PUT", "/api/v1/drains/nosuch"+as, `{}`, 404, "nosuch")
	c.try("GET", "/api/v1/drains/nosuch"+as, "", 404, "nosuch")
	c.try("DELETE", path+as, "", 404, "no call has drained it")

	c.try("PUT", path+as, `{"reason":"new disks"}`, 200, `"state":"DECOMMISSIONING","containers":1`)
	c.try("GET", "/api/v1/drains"+as, "", 200, `"reason":"new disks","by":"root"`)
	c.try("DELETE", path+as, "", 200, `"state":"RUNNING","containers":1`)
	c.try("PUT", path+as, `{"at_once":true}`, 200, `"state":"DECOMMISSIONED","containers":0`)
	c.try("DELETE", path+as, "", 200, `"state":"SHUTDOWN"`)
}
