"""The paper reproduced: its theory, study, baselines and causal diagram (extra `paper`)."""
