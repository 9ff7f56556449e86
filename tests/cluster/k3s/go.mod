// The K3s stand-in. The version of its only module is that of the sandbox's control plane.
module hwaccel.gpu/k3s

go 1.26.0

require go.yaml.in/yaml/v3 v3.0.4
