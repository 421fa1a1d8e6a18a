// SPDX-License-Identifier: Apache-2.0

package webdoc

import "encoding/xml"

// Submission is the part of a submission document that decides where an application runs, by its JSON and XML names. A
// router reads this part, and a ResourceManager the whole document, of which this is a part.
type Submission struct {
	XMLName     xml.Name `json:"-" xml:"application-submission-context"`
	ID          Text     `json:"application-id" xml:"application-id"`
	Name        Text     `json:"application-name" xml:"application-name"`
	Queue       Text     `json:"queue" xml:"queue"`
	Type        Text     `json:"application-type" xml:"application-type"`
	AMLabel     Text     `json:"am-container-node-label-expression" xml:"am-container-node-label-expression"`
	Label       Text     `json:"app-node-label-expression" xml:"app-node-label-expression"`
	Reservation Text     `json:"reservation-id" xml:"reservation-id"`
	Tags        struct {
		Tag Many[Text] `json:"tag" xml:"tag"`
	} `json:"application-tags" xml:"application-tags"`
	Resource struct {
		Memory Long `json:"memory" xml:"memory"`
		VCores Int  `json:"vCores" xml:"vCores"`
	} `json:"resource" xml:"resource"`
}
