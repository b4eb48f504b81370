def judge_blank(grey): return False,"todo"
