package similar

import "math"

// Params are the measure's parameters and the clusters' bounds. Position, System, Chain,
// Mean and Shift are factors or exponents, Share is a part of one and Wrapper a number; the
// others are natural logarithms of odds, and what costs is negative.
type Params struct {
	Position  float64 // how fast a frame's weight falls with the program's frames above it
	System    float64 // the weight of a frame that signatures walk past, of that of one of the program
	Chain     float64 // the weight of a match right below another, which that one leads to expect
	Place     float64 // the most that a frame without a name weighs, when both have the same
	Unnamed   float64 // the most that one says of a frame of its module, which falls with the position
	Hidden    float64 // and whatever the position
	Variant   float64 // what it costs that the topmost frame is another variant
	Gap       float64 // what the first frame costs that only one has
	Gaps      float64 // and each further one in a row
	Wrap      float64 // what a wrapper costs that only one has
	Wrapper   float64 // how many different frames must be met above and below one that is a wrapper
	Reported  float64 // what a frame costs that reports the fault
	TopSystem float64 // what one costs above the program's topmost, when it is the system's
	Top       float64 // and when it is the program's topmost itself
	Apart     float64 // and when neither has the other's
	Cut       float64 // what it costs that one of them ends
	Way       float64 // what it costs that they came by different ways from a frame on
	TopWay    float64 // and when that is the program's topmost
	Utility   float64 // and for each caller of that one which was met beyond the first few
	Mean      float64 // how much the mean of a cluster's kinds of stacks counts, beside the best
	Size      float64 // what the logarithm of a cluster's size says for it
	Familiar  float64 // how much of what a stack says of itself may be missing in the kind that it is of
	Share     float64 // the part of a fault's stacks that may have lost their topmost frame
	Shift     float64 // how much it counts that more have
	Threshold float64 // the least that must be said for a cluster to be joined
	Unite     float64 // and for two to become one
	Split     float64 // and for the kinds of stacks of a cluster to stay together
}

// DefaultParams did best on the programs' stacks that bench/buckets makes to develop
// by, rounded. They are judged on others; bench/README.md has both figures.
var DefaultParams = Params{
	Position: 0.8, System: 0.2, Chain: 0.48, Place: 1.1, Unnamed: 0.8, Hidden: 1.5, Variant: -1.2,
	Gap: -0.21, Gaps: -1.5, Wrap: -0.2, Wrapper: 7, Reported: -0.2, TopSystem: -1.03, Top: -1.2,
	Apart: -3, Cut: 0, Way: -1.83, TopWay: -2.5, Utility: -0.69,
	Mean: 0.39, Size: 0.35, Familiar: 1.4, Share: 0.095, Shift: 0.9, Threshold: 0.54, Unite: 0.73, Split: -0.7,
}

// one is the unit of fixed-point numbers, so that what is decided does not depend on how
// a processor rounds.
const one = 1 << 16

// bound is of parameters, so that sums over the deepest stacks do not overflow.
const bound = 100

func fixed(f float64) int32 {
	if math.IsNaN(f) {
		return 0
	}
	return int32(math.Round(max(min(f, bound), -bound) * one))
}
