// SPDX-License-Identifier: Apache-2.0

package yarnpb_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/yarnpb"
)

// hadoopUnits are the answers of Hadoop 3.4.2: getResourceInformation(type) of a ResourcePBImpl made from an amount,
// with yarn.resource-types.bandwidth.units=M and a type plain without a unit. Each line has the type, the unit of the
// message, the amount, and the amount in the type's unit; "no" is an IllegalArgumentException. Rows
// are left out in which Hadoop rounds wrongly, or rejects an amount that fits.
const hadoopUnits = `
bandwidth none 1500 1500
bandwidth none 7000000 7000000
bandwidth none 9000000000000000000 9000000000000000000
bandwidth "" 1500 0
bandwidth "" 7000000 7
bandwidth "" 9000000000000000000 9000000000000
bandwidth k 1500 1
bandwidth k 7000000 7000
bandwidth M 1500 1500
bandwidth M 7000000 7000000
bandwidth M 9000000000000000000 9000000000000000000
bandwidth G 1500 1500000
bandwidth G 7000000 7000000000
bandwidth G 9000000000000000000 no
bandwidth Ki 1500 1
bandwidth Ki 7000000 7168
bandwidth Mi 1500 1572
bandwidth Mi 7000000 7340032
bandwidth Gi 1500 1610612
bandwidth Gi 7000000 7516192768
bandwidth Gi 9000000000000000000 no
bandwidth m 1500 0
bandwidth m 7000000 0
bandwidth m 9000000000000000000 9000000000
bandwidth u 1500 0
bandwidth u 7000000 0
bandwidth u 9000000000000000000 9000000
bandwidth n 1500 0
bandwidth n 7000000 0
bandwidth n 9000000000000000000 9000
bandwidth p 1500 0
bandwidth p 7000000 0
bandwidth p 9000000000000000000 9
bandwidth T 1500 1500000000
bandwidth T 7000000 7000000000000
bandwidth T 9000000000000000000 no
bandwidth P 1500 1500000000000
bandwidth P 7000000 7000000000000000
bandwidth P 9000000000000000000 no
bandwidth Ti 1500 1649267441
bandwidth Ti 7000000 7696581394432
bandwidth Ti 9000000000000000000 no
bandwidth Pi 1500 1688849860263
bandwidth Pi 9000000000000000000 no
bandwidth X 1500 no
bandwidth X 7000000 no
bandwidth X 9000000000000000000 no
bandwidth kB 1500 no
bandwidth kB 7000000 no
bandwidth kB 9000000000000000000 no
bandwidth mi 1500 no
bandwidth mi 7000000 no
bandwidth mi 9000000000000000000 no
plain none 1500 1500
plain none 7000000 7000000
plain none 9000000000000000000 9000000000000000000
plain k 1500 1500000
plain k 7000000 7000000000
plain k 9000000000000000000 no
plain m 1500 1
plain m 7000000 7000
plain m 9000000000000000000 9000000000000000
plain u 1500 0
plain u 7000000 7
plain u 9000000000000000000 9000000000000
plain P 1500 1500000000000000000
plain P 7000000 no
plain P 9000000000000000000 no
plain Pi 1500 1688849860263936000
plain Pi 7000000 no
plain Pi 9000000000000000000 no
`

func TestUnitsAreConvertedAsInHadoop(t *testing.T) {
	types := []creel.ResourceType{{Name: "bandwidth", Unit: "M"}, {Name: "plain"}}
	for line := range strings.Lines(strings.TrimSpace(hadoopUnits)) {
		f := strings.Fields(line)
		value, err := strconv.ParseInt(f[2], 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		e := &yarnpb.ResourceInformationProto{Key: &f[0], Value: &value}
		if f[1] != "none" {
			e.Units = new(strings.Trim(f[1], `"`))
		}
		got := "no"
		if err := yarnpb.ConvertUnits(&yarnpb.ResourceProto{
			ResourceValueMap: []*yarnpb.ResourceInformationProto{e},
		}, types); err == nil {
			got = strconv.FormatInt(e.GetValue(), 10)
		}
		if got != f[3] {
			t.Errorf("%s: got %s", strings.TrimSpace(line), got)
		}
	}
}
